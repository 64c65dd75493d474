#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: right and wrong use, exit codes, and what is left behind.

    test_cli.py MILLRACE [unittest arguments]
"""
import json
import os
import socket
import stat

import harness


def episode(name, group="g0"):
    """One line of a traces.jsonl with two nodes, five tokens."""
    nodes = [
        {"message": {"role": "user", "content": "ask"}, "sampled": False, "token_ids": [1, 2],
         "mask": [False, False], "is_content": [], "logprobs": []},
        {"parent": 0, "message": {"role": "assistant", "content": "say"}, "sampled": True,
         "token_ids": [3, 4, 5], "mask": [False, True, True], "is_content": [],
         "logprobs": [-0.5, 0.0]},
    ]
    trace = {"id": "t", "agent": {"name": "solver", "trainable": True}, "nodes": nodes,
             "rewards": {"right": {"score": 0.5, "weight": 2.0}}, "metrics": {}, "info": {},
             "ok": True, "is_completed": True, "errors": []}
    return json.dumps({"id": name, "env": {"id": "maths"}, "group": {"id": group}, "ok": True,
                       "task": {"type": "T", "data": {}, "key": "k"}, "errors": [],
                       "traces": [trace]})


class Case(harness.Case):
    def traces(self, lines=4):
        path = self.dir / "traces.jsonl"
        path.write_text("".join(episode(f"e{i}") + "\n" for i in range(lines)))
        return path


class Usage(Case):
    def test_version_is_one_line(self):
        done = self.run_millrace("--version")
        self.assert_succeeds(done)
        self.assertRegex(done.stdout, r"^millrace \d+\.\d+\.\d+\n$")

    def test_help_shows_examples_and_exit_codes(self):
        done = self.run_millrace("--help")
        self.assert_succeeds(done)
        self.assertIn("Examples:", done.stdout)
        self.assertIn("Exit codes:", done.stdout)

    def test_every_command_has_help(self):
        for command in COMMANDS:
            done = self.run_millrace(command, "--help")
            self.assert_succeeds(done)
            self.assertIn(f"Usage: millrace {command}", done.stdout)

    def test_no_command_is_bad_use(self):
        self.assert_fails(self.run_millrace(), 2, "no command", "--help")

    def test_an_unknown_command_names_the_nearest(self):
        self.assert_fails(self.run_millrace("inspct"), 2, "'inspct'", "did you mean 'inspect'?")

    def test_an_unknown_command_unlike_all_points_to_help(self):
        self.assert_fails(self.run_millrace("zzzzzzzz"), 2, "'zzzzzzzz'", "--help")

    def test_an_unknown_flag_is_named(self):
        self.assert_fails(self.run_millrace("inspect", "--jsn", "x"), 2, "--jsn")

    def test_a_missing_argument_is_named(self):
        self.assert_fails(self.run_millrace("inspect"), 2, "FILE")
        self.assert_fails(self.run_millrace("import", "x.jsonl"), 2, "--out")

    def test_two_commands_are_bad_use(self):
        self.assert_fails(self.run_millrace("inspect", "x", "inspect", "y"), 2, "inspect")

    def test_control_characters_do_not_reach_the_terminal(self):
        self.assert_fails(self.run_millrace("a\n\x1b[31mb"), 2)
        self.assertNotIn("\x1b", self.run_millrace("a\x1b[31mb").stderr)


class Paths(Case):
    """Input and output paths that cannot be."""

    def test_a_missing_input_is_bad_use(self):
        for args in (["inspect", "none"], ["import", "none", "-o", "out.mrec"]):
            self.assert_fails(self.run_millrace(*args), 2, "'none'", "No such file")
        self.assert_only()

    def test_a_folder_as_input_is_bad_use(self):
        (self.dir / "d").mkdir()
        for args in (["inspect", "d"], ["import", "d", "-o", "out.mrec"]):
            self.assert_fails(self.run_millrace(*args), 2, "'d'", "directory")
        self.assert_only("d")

    def test_a_pipe_as_input_is_bad_use_and_does_not_hang(self):
        os.mkfifo(self.dir / "p")
        self.assert_fails(self.run_millrace("inspect", "p"), 2, "not a regular file")

    def test_an_output_that_is_a_folder_or_lies_in_none_is_bad_use(self):
        (self.dir / "d").mkdir()
        self.traces()
        for out in ("d", "none/out.mrec", "traces.jsonl/out.mrec"):
            for args in (["synth", "--preset", "quickstart"], ["import", "traces.jsonl"]):
                self.assert_fails(self.run_millrace(*args, "-o", out), 2, f"'{out}'")
        self.assert_only("d", "traces.jsonl")

    def test_the_trace_file_is_not_replaced_by_its_recording(self):
        before = self.traces().read_bytes()
        self.assert_fails(self.run_millrace("import", "traces.jsonl", "-o", "./traces.jsonl"), 2,
                          "-o")
        self.assertEqual((self.dir / "traces.jsonl").read_bytes(), before)


class Import(Case):
    def test_good_traces_become_a_recording(self):
        done = self.run_millrace("import", self.traces(), "-o", "out.mrec")
        self.assert_succeeds(done)
        self.assertIn("4 ok", done.stdout)
        shown = self.run_millrace("inspect", "out.mrec", "--json")
        self.assert_succeeds(shown)
        self.assertEqual(json.loads(shown.stdout)["episodes"], 4)

    def test_an_empty_file_fails_and_leaves_no_recording(self):
        (self.dir / "empty.jsonl").touch()
        self.assert_fails(self.run_millrace("import", "empty.jsonl", "-o", "out.mrec"), 1,
                          "empty.jsonl", "nothing was imported")
        self.assert_only("empty.jsonl")

    def test_lines_that_are_not_json_are_named_and_the_rest_is_imported(self):
        path = self.traces()
        path.write_text("nonsense\n" + path.read_text())
        done = self.run_millrace("import", path, "-o", "out.mrec")
        self.assert_succeeds(done)
        self.assertIn("traces.jsonl:1: ", done.stdout)

    def test_nothing_but_refused_lines_fails(self):
        (self.dir / "bad.jsonl").write_text("nonsense\n" * 3)
        self.assert_fails(self.run_millrace("import", "bad.jsonl", "-o", "out.mrec"), 1)
        self.assert_only("bad.jsonl")


class Inspect(Case):
    def test_an_empty_file_is_no_recording(self):
        (self.dir / "e.mrec").touch()
        self.assert_fails(self.run_millrace("inspect", "e.mrec"), 1, "e.mrec", "empty")

    def test_a_file_of_another_kind_is_no_recording(self):
        (self.dir / "t.mrec").write_text("text " * 100)
        self.assert_fails(self.run_millrace("inspect", "t.mrec"), 1, "t.mrec")

    def test_a_flipped_bit_fails_unless_damage_is_allowed(self):
        path = self.synth()
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        done = self.run_millrace("inspect", path)
        self.assert_fails(done, 1, "damaged", "--allow-damage")
        self.assertIn("offset", done.stdout)
        self.assert_succeeds(self.run_millrace("inspect", path, "--allow-damage"))
        self.assertTrue(json.loads(self.run_millrace("inspect", path, "--json").stdout)["damaged"])

    def test_a_cut_off_recording_is_reported_wherever_it_is_cut(self):
        data = self.synth().read_bytes()
        path = self.dir / "cut.mrec"
        for size in (1, 63, 64, 65, 100, len(data) // 3, len(data) // 2, len(data) - 1):
            path.write_bytes(data[:size])
            done = self.run_millrace("inspect", path, "--json")
            self.assertIn(done.returncode, (0, 1))
            if size < 64:
                self.assert_fails(done, 1, "cut.mrec")
            else:
                self.assertFalse(json.loads(done.stdout)["finished"])


class FullDisk(Case):
    """What is written is whole, or it is not there."""

    def test_a_full_disk_while_writing_a_recording_leaves_nothing(self):
        path = self.traces(400)
        for limit in (0, 64, 1000, 20_000):
            for args in (["synth", "--preset", "quickstart", "--scale", "0.1"], ["import", path]):
                self.assert_fails(self.run_millrace(*args, "-o", "out.mrec", file_bytes=limit), 1,
                                  "'out.mrec'", "File too large")
                self.assert_only("traces.jsonl")

    def test_a_recording_that_is_there_outlives_a_failed_one(self):
        path = self.synth()
        before = path.read_bytes()
        self.assert_fails(self.run_millrace("synth", "--preset", "quickstart", "-o", path,
                                            file_bytes=4096), 1)
        self.assertEqual(path.read_bytes(), before)
        self.assert_only(path.name)

    def test_a_full_standard_output_is_an_error(self):
        path = self.synth()
        for args in (["inspect", path], ["inspect", path, "--json"], ["--help"], ["--version"],
                     ["synth", "--preset", "quickstart", "--scale", "0.02", "-o", "o.mrec"],
                     ["import", self.traces(), "-o", "o.mrec"]):
            with open("/dev/full", "w") as full:
                self.assert_fails(self.run_millrace(*args, stdout=full), 1, "standard output")

    def test_a_closed_standard_output_is_an_error_and_spares_the_files(self):
        path = self.synth()
        before = path.read_bytes()
        self.assert_fails(self.run_millrace("inspect", path, close_stdout=True, stdout=None), 1,
                          "standard output")
        self.assertEqual(path.read_bytes(), before)
        self.run_millrace("synth", "--preset", "quickstart", "--scale", "0.02", "-o", "again.mrec",
                          close_stdout=True, stdout=None)
        self.assertEqual((self.dir / "again.mrec").read_bytes(), before)

    def test_a_reader_that_went_away_is_an_error(self):
        path = self.synth()
        reader, writer = os.pipe()
        os.close(reader)
        try:
            self.assert_fails(self.run_millrace("inspect", path, stdout=writer), 1, "Broken pipe")
        finally:
            os.close(writer)


class Run(Case):
    """`run` with a config of few episodes; what it computes is tested elsewhere."""

    CONFIG = """source.preset = "quickstart"
source.scale = 0.02
batch.traces = 8
seq_len = 4096
trainer.ranks = 2
"""

    def config(self, text=""):
        (self.dir / "c.toml").write_text(self.CONFIG + text)
        return "c.toml"

    def test_a_run_ends_well_and_writes_its_summary(self):
        done = self.run_millrace("run", self.config(), "--json", "q.json")
        self.assert_succeeds(done)
        summary = json.loads((self.dir / "q.json").read_text())
        self.assertEqual(sum(summary["ledger"].values()), summary["episodes"])
        self.assertIn(summary["grid_hash"], done.stdout)
        self.assert_only("c.toml", "q.json")

    def test_a_recording_wins_over_a_preset(self):
        path = self.synth(scale="0.05")
        self.assert_succeeds(self.run_millrace("run", self.config(), "--set",
                                               f"source.path={path}", "--json", "q.json"))
        summary = json.loads((self.dir / "q.json").read_text())
        self.assertEqual(summary["source"], str(path))

    def test_a_missing_config_is_bad_use(self):
        self.assert_fails(self.run_millrace("run", "none.toml"), 2, "none.toml", "No such file")
        self.assert_fails(self.run_millrace("run", self.dir), 2, "directory")

    def test_an_empty_config_says_what_must_be_set(self):
        (self.dir / "c.toml").touch()
        done = self.run_millrace("run", "c.toml")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"^millrace: c.toml: source.path .*\n"
                                      r"millrace: c.toml: batch.traces .*\n$")

    def test_a_config_that_is_not_toml_is_one_line_with_its_place(self):
        self.assert_fails(self.run_millrace("run", self.config("vocab_size = = 3\n")), 2,
                          "c.toml:6: ")

    def test_unknown_keys_wrong_types_and_values_out_of_range_are_one_line_each(self):
        self.assert_fails(self.run_millrace("run", self.config("scorer.instnces = 2\n")), 2,
                          "'scorer.instnces' in c.toml:6", "'scorer.instances'?")
        self.assert_fails(self.run_millrace("run", self.config(), "--set", "seq_len=long"), 2,
                          "seq_len in --set: 'long' is a string, an integer is wanted")
        self.assert_fails(self.run_millrace("run", self.config(), "--set", "scorer.instances=0"), 2,
                          "scorer.instances in --set: 0 is out of range")

    def test_all_errors_of_a_config_come_at_once(self):
        done = self.run_millrace("run", self.config("scorer.instances = 0\nbogus_key = 1\n"),
                                 "--set", "seq_len=x", "--set", "nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 4, done.stderr)
        self.assertEqual(done.stderr.count("millrace: "), 4, done.stderr)
        self.assert_only("c.toml")

    def test_a_source_that_cannot_be_read_is_one_line(self):
        (self.dir / "e.mrec").touch()
        (self.dir / "d").mkdir()
        config = self.config()
        for path, code in (("none.mrec", 2), ("d", 2), ("e.mrec", 1)):
            done = self.run_millrace("run", config, "--set", f"source.path={path}")
            self.assert_fails(done, code, path)

    def test_a_damaged_source_fails_unless_damage_is_allowed(self):
        path = self.synth(scale="0.05")
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        args = ["run", self.config(), "--set", f"source.path={path}"]
        done = self.run_millrace(*args)
        self.assertEqual(done.returncode, 1)
        errors = [line for line in done.stderr.splitlines() if line.startswith("millrace: ")]
        self.assertEqual(len(errors), 1, done.stderr)  # beside them the log warns of what is missing
        self.assertIn("damaged; --allow-damage", errors[0])
        self.assertEqual(self.run_millrace(*args, "--allow-damage").returncode, 0)

    def test_a_summary_that_cannot_be_written_is_told_before_the_work(self):
        (self.dir / "d").mkdir()
        for path in ("d", "none/q.json"):
            done = self.run_millrace("run", self.config(), "--json", path)
            self.assert_fails(done, 2, path)
            self.assertEqual(done.stdout, "")

    def test_a_full_disk_is_one_line_and_leaves_no_half_summary(self):
        path = self.synth()
        args = ["run", self.config(), "--set", f"source.path={path}"]
        self.assert_fails(self.run_millrace(*args, "--json", "q.json", file_bytes=100), 1,
                          "planner.log'", "File too large")
        self.assertFalse((self.dir / "q.json").exists())
        self.assert_fails(self.run_millrace("run", self.config(), file_bytes=1000), 1,
                          "File too large")
        self.assert_fails(self.run_millrace(*args, "--dump", "tensors", file_bytes=50_000), 1,
                          "File too large")
        with open("/dev/full", "w") as full:
            self.assert_fails(self.run_millrace(*args, stdout=full), 1, "standard output")

    def test_a_full_disk_under_a_dump_is_told_and_not_that_other_ranks_were_lost_by_it(self):
        path = self.synth()
        for attempt in range(5):
            done = self.run_millrace("run", self.config(), "--set", f"source.path={path}", "--set",
                                     "trainer.ranks=4", "--dump", f"d{attempt}", file_bytes=10_000)
            self.assert_fails(done, 1, "File too large")

    def test_a_dump_does_not_mix_with_that_of_another_run(self):
        args = ("run", self.config(), "--dump", "d")
        self.assert_succeeds(self.run_millrace(*args))
        self.assert_fails(self.run_millrace(*args), 2, "d holds the steps")

    def test_a_closed_standard_output_does_not_end_up_in_the_summary(self):
        done = self.run_millrace("run", self.config(), "--json", "q.json", close_stdout=True,
                                 stdout=None)
        self.assert_fails(done, 1, "standard output")
        self.assertIn("grid_hash", json.loads((self.dir / "q.json").read_text()))

    def test_a_state_folder_is_made_and_a_file_in_its_place_refused(self):
        config = self.config()
        self.assert_succeeds(self.run_millrace("run", config, "--set", "state=st"))
        self.assertTrue((self.dir / "st").is_dir())
        self.assert_fails(self.run_millrace("run", config, "--set", f"state={config}"), 2, config)


class Conform(Case):
    def test_a_folder_without_cases_is_bad_use(self):
        self.assert_fails(self.run_millrace("conform", "none"), 2, "none")
        self.assert_fails(self.run_millrace("conform", "."), 2)

    def test_a_case_that_is_not_met_fails_and_is_named(self):
        (self.dir / "partition").mkdir()
        (self.dir / "partition" / "wrong.json").write_text(json.dumps(
            {"entries": [{"weights": [1, 2], "num_partitions": 2, "after_differencing": [[0], [1]],
                          "expected": [[0], [1]]}]}))
        done = self.run_millrace("conform", ".")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("partition/wrong", done.stdout)
        self.assertTrue(done.stdout.endswith("0 passed, 1 failed\n"), done.stdout)


class Config(Case):
    def test_every_key_is_shown_with_the_value_in_effect(self):
        (self.dir / "c.toml").write_text('source.preset = "quickstart"\nbatch.traces = 8\nscorer.instances = 3\n')
        done = self.run_millrace("config", "c.toml", "--set", "packer.instances=4")
        self.assert_succeeds(done)
        for line in ("scorer.instances = 3", "packer.instances = 4", "assembler.instances = 1", 'run.id = "c"'):
            self.assertIn(line + "\n", done.stdout)

    def test_what_is_shown_is_a_config(self):
        (self.dir / "c.toml").write_text('source.preset = "quickstart"\nbatch.traces = 8\n[env."a b"]\n')
        first = self.run_millrace("config", "c.toml")
        (self.dir / "d.toml").write_text(first.stdout)
        self.assertEqual(self.run_millrace("config", "d.toml").stdout, first.stdout)

    def test_a_config_that_does_not_load_is_bad_use(self):
        self.assert_fails(self.run_millrace("config", "none.toml"), 2, "none.toml")


class Keygen(Case):
    def test_new_keys_are_made_and_the_public_one_is_printed(self):
        done = self.run_millrace("keygen", "a/keys")
        self.assert_succeeds(done)
        keys = self.dir / "a/keys"
        public = (keys / "public.key").read_text().strip()
        self.assertIn(f"public key: {public}\n", done.stdout)
        self.assertIn('curve.folder = "a/keys"', done.stdout)
        self.assertIn(f'curve.directory_key = "{public}"', done.stdout)
        self.assertNotIn((keys / "secret.key").read_text().strip(), done.stdout)
        self.assertEqual(stat.S_IMODE((keys / "secret.key").stat().st_mode), 0o600)
        self.assertEqual(sorted(os.listdir(keys)), ["allowed", "public.key", "secret.key"])

    def test_keys_that_are_there_are_kept(self):
        self.assert_succeeds(self.run_millrace("keygen", "k"))
        before = (self.dir / "k/secret.key").read_bytes()
        self.assert_fails(self.run_millrace("keygen", "k"), 1, "secret.key", "there already")
        self.assertEqual((self.dir / "k/secret.key").read_bytes(), before)

    def test_a_place_where_nothing_can_be_made_is_named(self):
        (self.dir / "f").touch()
        self.assert_fails(self.run_millrace("keygen", "f"), 1, "'f'")
        self.assert_fails(self.run_millrace("keygen", "f/k"), 1, "'f/k'")
        self.assert_fails(self.run_millrace("keygen"), 2, "DIR")

    def test_a_full_disk_leaves_no_keys(self):
        self.assert_fails(self.run_millrace("keygen", "k", file_bytes=50), 1, "File too large")
        self.assertEqual(os.listdir(self.dir / "k"), [])


class Synth(Case):
    def test_the_same_seed_gives_the_same_bytes_and_another_does_not(self):
        def made(seed):
            self.assert_succeeds(self.run_millrace("synth", "--preset", "quickstart", "--scale",
                                                   "0.02", "--seed", seed, "-o", "o.mrec"))
            return (self.dir / "o.mrec").read_bytes()
        self.assertEqual(made(7), made(7))
        self.assertNotEqual(made(7), made(8))

    def test_an_unknown_preset_names_those_there_are(self):
        self.assert_fails(self.run_millrace("synth", "--preset", "nope", "-o", "o.mrec"), 2, "nope",
                          "quickstart")

    def test_numbers_that_are_none_or_out_of_range_are_refused(self):
        for flag, value in (("--scale", "x"), ("--scale", "-1"), ("--scale", "0"),
                            ("--scale", "nan"), ("--scale", "1e9"), ("--seed", "-1"),
                            ("--seed", "1.5"), ("--seed", "99999999999999999999999")):
            done = self.run_millrace("synth", "--preset", "quickstart", flag, value, "-o", "o.mrec")
            self.assert_fails(done, 2)
        self.assert_only()

    def test_a_recording_has_the_permissions_of_any_new_file(self):
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(stat.S_IMODE(self.synth().stat().st_mode), 0o666 & ~mask)


class Attach(Case):
    """status, why, top and drain where there is no system to attach to."""
    COMMANDS = (["status"], ["why"], ["top"], ["drain", "scorer-1"])

    def test_without_a_system_they_ask_which_one(self):
        for command in self.COMMANDS:
            self.assert_fails(self.run_millrace(*command), 2, "--config CONFIG", "--connect ENDPOINT")

    def test_nobody_there_is_one_line_with_the_endpoint(self):
        endpoint = f"ipc://{self.dir}/nobody.sock"
        for command in self.COMMANDS:
            self.assert_fails(self.run_millrace(*command, "--connect", endpoint), 1, endpoint)

    def test_no_answer_is_one_line_with_endpoint_and_seconds(self):
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(f"{self.dir}/silent.sock")
            silent.listen()
            endpoint = f"ipc://{self.dir}/silent.sock"
            for command in self.COMMANDS:
                done = self.run_millrace(*command, "--connect", endpoint, "--wait", "0.2")
                self.assert_fails(done, 1, endpoint, "0.2 s")

    def test_an_endpoint_that_is_none_is_refused(self):
        self.assert_fails(self.run_millrace("status", "--connect", "nowhere", "--wait", "0.2"), 2, "nowhere")

    def test_a_config_gives_the_endpoint(self):
        endpoint = f"ipc://{self.dir}/directory.sock"
        (self.dir / "c.toml").write_text(
            f'directory.endpoint = "{endpoint}"\nsource.preset = "quickstart"\nbatch.traces = 8\n')
        self.assert_fails(self.run_millrace("why", "--config", "c.toml", "--wait", "0.2"), 1, endpoint)
        other = f"ipc://{self.dir}/other.sock"
        self.assert_fails(self.run_millrace("why", "--config", "c.toml", "--set",
                                            f"directory.endpoint={other}", "--wait", "0.2"), 1, other)

    def test_times_that_are_none_are_refused(self):
        for value in ("x", "0", "-1", "nan", "inf"):
            self.assert_fails(self.run_millrace("why", "--connect", "ipc://x", "--wait", value), 2, value)


COMMANDS = ["run", "import", "synth", "inspect", "conform", "config", "keygen", "status", "why", "top", "drain"]

if __name__ == "__main__":
    harness.main()
