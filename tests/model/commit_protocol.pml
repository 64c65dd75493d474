/* SPDX-License-Identifier: Apache-2.0
 *
 * How steps are committed, for the model checker spin: the planner with its log, two ranks with
 * their checkpoints, and whatever may die in between. README.md says what is in it, what is left
 * out and which rule each BUG_ breaks; run.sh checks it in all configurations.
 *
 * An option of a process is one event: a message is taken and dealt with. The planner may also die
 * within one, at every `may_die`. All state is global, so that a crash can wipe what it would.
 *
 * Settings (-D): STEPS, CRASHES, AHEAD, KEEP_TRAINED, LATE, STALE, DISK_LOSS, BUG_..., WITNESS_...
 */
#ifndef STEPS
#define STEPS 4
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef AHEAD
#define AHEAD 1 /* a step is cut while at most so many committed ones are not trained */
#endif
#define EVERY 2   /* steps between checkpoints */
#define GROUPS 15 /* of the source */
#define BOTH 3    /* a set of ranks: bit r */

mtype = { HELLO, COMMIT, BEGIN, END, RECORDED };                       /* planner to rank */
mtype = { DOWN, COLLECT, RUN, DONE, REFUSED };                         /* the planner */
mtype = { IDLE, ENTERED, APPLIED, SAVE };                              /* a trainer */
mtype = { OPEN, GENERATION, COMMITTED, TRAINED, DURABLE, ROLLED_BACK }; /* records */

/* --- On disk. */

/* The log, as what its records come to. The content of a step is the number of its group. */
byte log_starts, log_generation, log_last, log_trained, log_durable;
byte log_commit[5]; /* by step */
short log_rolled;   /* groups of trained steps that were rolled back: bit g */

/* Checkpoints of a rank: contents of the steps in it, the oldest highest, and which generation wrote
 * it; 0: not there. */
#define SLOTS (STEPS / EVERY + 1)
#define slot(r, s) ((r) * SLOTS + (s) / EVERY)
int ck_model[2 * SLOTS];
byte ck_generation[2 * SLOTS];

/* --- In memory. */

/* The planner, and what it knows of each rank. */
mtype phase = DOWN;
byte epoch; /* of its claim; 0: it is not up */
byte plan;  /* content of step log_last + 1, cut and not committed; 0: none */
byte heard; /* ranks whose rank_state it has */
byte r_generation[2];
byte r_given[2];     /* bins of steps up to it are with packers or further */
byte r_staged[2];    /* steps: bit s */
byte r_committed[2]; /* up to it: the rank was told */
byte r_trained[2];   /* up to it */
byte r_saved[2];     /* the last checkpoint */

/* A rank: its feeder and its trainer, one process. What it tells the planner is not in a channel:
 * the planner looks at it at some time later. Looking early or late is all that a message can do,
 * since they come in order, and what a dead one has sent is not heard. */
#define at(r, s) ((r) * 5 + (s))
byte known[2]; /* the epoch that it obeys; 0: it has met no planner */
bool fresh[2]; /* the planner has not noticed that the one before it died */
bool answer[2]; /* rank_state is on its way */
byte generation[2];
byte held[10];     /* content of a step that is staged or committed; 0: not here */
byte staged[2];    /* steps: bit s */
byte committed[2]; /* up to it */
byte handed[2];    /* up to it, to the trainer */
mtype trainer[2] = IDLE;
byte done[2]; /* steps that the model in memory holds */
int model[2]; /* their contents */
byte trained[2], saved[2]; /* said so; saved: by this generation */
/* The last collective that the rank went into: 2s - 1 before step s, 2s after it. What it sent may
 * arrive though it is dead. */
byte entered[2], entered_generation[2];
byte broken; /* the last generation that lost a rank */

/* Packers: bins that are packed and not fetched, by rank and step. */
byte bin[10], bin_epoch[10];

/* Each start of the planner has connections of its own to the ranks: what an earlier one has sent
 * may arrive late, at any time and in its order. */
chan to_rank[4] = [6] of { mtype, byte, byte, byte }; /* 2r + start % 2 */
#ifdef STALE
chan from_stale[2] = [1] of { mtype, byte, byte, byte };
#endif

byte crashes;    /* that are still to come */
byte applied[2]; /* for checks: steps that the rank has applied and the log does not call trained: bit s */

/* --- Shorthand. */

#define other(r) (1 - (r))
#define has(set, n) (((set) >> (n)) & 1)
#define with(set, n) ((set) | (1 << (n)))
#define without(set, n) ((set) & ~(1 << (n)))
#define min(x, y) ((x) < (y) -> (x) : (y))
#define max(x, y) ((x) > (y) -> (x) : (y))
#define ended (phase == DONE || phase == REFUSED)
#define all_trained (min(r_trained[0], r_trained[1]))
#ifdef BUG_DURABLE_EARLY
#define all_saved (max(r_saved[0], r_saved[1]))
#else
#define all_saved (min(r_saved[0], r_saved[1]))
#endif

inline drain(c) {
  do
  :: nempty(to_rank[c]) -> to_rank[c]?_, _, _, _
  :: empty(to_rank[c]) -> break
  od
}

/* Rises with every start and with every trainer job. */
#ifdef BUG_EPOCH_STAYS
#define epoch_of_log (log_starts)
#else
#define epoch_of_log (log_starts + log_generation)
#endif

/* --- What a record does once it is on disk. */

#define in_log(g) (log_commit[1] == (g) || log_commit[2] == (g) || log_commit[3] == (g) || log_commit[4] == (g))

/* The contents of all steps up to n, as a checkpoint has them. */
inline model_of_log(n) {
  m = 0;
  for (i : 1 .. n) {
    m = m * 16 + log_commit[i]
  }
}

inline written(what, content) {
  if
  :: what == OPEN -> log_starts++
  :: what == GENERATION -> log_generation++
  :: what == COMMITTED ->
     assert(!in_log(content) && !has(log_rolled, content)); /* no group in two steps */
     log_last++;
     log_commit[log_last] = content
  :: what == TRAINED ->
     log_trained++;
     assert(log_trained <= log_last);
     assert(has(applied[0], log_trained) && has(applied[1], log_trained));
     applied[0] = without(applied[0], log_trained);
     applied[1] = without(applied[1], log_trained)
  :: what == DURABLE ->
     log_durable = content;
     assert(log_durable <= log_trained);
#ifndef DISK_LOSS
     /* One job has written it, and what it holds is what the log says. */
     model_of_log(log_durable);
     assert(ck_generation[slot(0, log_durable)]);
     assert(ck_generation[slot(0, log_durable)] == ck_generation[slot(1, log_durable)]);
     assert(ck_model[slot(0, log_durable)] == m && ck_model[slot(1, log_durable)] == m);
     m = 0
#endif
  :: what == ROLLED_BACK ->
#ifndef KEEP_TRAINED
     assert(false);
#endif
#ifdef WITNESS_ROLLED_BACK
     assert(log_trained == log_durable); /* a trained step is lost: this can be */
#endif
     for (i : log_durable + 1 .. log_last) {
       log_rolled = (i <= log_trained -> with(log_rolled, log_commit[i]) : log_rolled);
       log_commit[i] = 0;
       applied[0] = without(applied[0], i);
       applied[1] = without(applied[1], i)
     }
     log_last = log_durable;
     log_trained = log_durable
  fi;
  i = 0
}

/* --- What dies. */

inline lose_rank(r) {
  if
  :: generation[r] && generation[r] == generation[other(r)] -> broken = generation[r]
  :: else -> /* nobody is left who could hear of it */
     broken = 0;
     entered[0] = 0;
     entered[1] = 0;
     entered_generation[0] = 0;
     entered_generation[1] = 0
  fi;
  known[r] = 0;
  answer[r] = 0;
  generation[r] = 0;
  for (i : 1 .. STEPS) {
    held[at(r, i)] = 0
  }
  i = 0;
  staged[r] = 0;
  committed[r] = 0;
  handed[r] = 0;
  trainer[r] = IDLE;
  done[r] = 0;
  model[r] = 0;
  trained[r] = 0;
  saved[r] = 0;
  drain(2 * r);
  drain(2 * r + 1);
#ifdef STALE
  do
  :: nempty(from_stale[r]) -> from_stale[r]?_, _, _, _
  :: empty(from_stale[r]) -> break
  od;
#endif
  fresh[r] = epoch && !ended
}

#if defined(BUG_SAVED_OUTLIVES_GENERATION) || defined(BUG_DURABLE_NOT_FROZEN)
#define new_saved(r, s) r_saved[r] = max(r_saved[r], s)
#else
#define new_saved(r, s) r_saved[r] = s
#endif

/* The planner forgets what it knew of a rank. */
inline forget_rank(r) {
  heard = without(heard, r);
  r_generation[r] = 0;
  r_given[r] = 0;
  r_staged[r] = 0;
  r_committed[r] = 0;
  r_trained[r] = 0;
  new_saved(r, 0)
}

inline lose_planner() {
  phase = DOWN;
  epoch = 0;
  plan = 0;
  forget_rank(0);
  forget_rank(1);
  r_saved[0] = 0;
  r_saved[1] = 0;
  answer[0] = 0;
  answer[1] = 0;
  fresh[0] = 0;
  fresh[1] = 0
}

/* What the planner has sent to a rank arrives though it is dead, or does not. */
inline lose_connection(c) {
  if
  :: nempty(to_rank[c]) -> drain(c)
  :: true
  fi
}

inline planner_dies() {
  if
  :: epoch ->
     lose_connection(log_starts % 2);
     lose_connection(2 + log_starts % 2)
  :: else
  fi;
  lose_planner()
}

inline power_fails() {
  lose_planner();
  lose_rank(0);
  lose_rank(1);
  for (i : 1 .. STEPS) {
    bin[at(0, i)] = 0;
    bin_epoch[at(0, i)] = 0;
    bin[at(1, i)] = 0;
    bin_epoch[at(1, i)] = 0
  }
  i = 0
}

proctype accidents() {
  byte i;
end:
  do
  :: atomic { crashes && !ended && phase != DOWN -> crashes--; planner_dies() }
  :: atomic { crashes && !ended && known[0] -> crashes--; lose_rank(0) }
  :: atomic { crashes && !ended && known[1] -> crashes--; lose_rank(1) }
  :: atomic { crashes && !ended && (phase != DOWN || known[0] || known[1]) -> crashes--; power_fails() }
#ifdef DISK_LOSS
  :: atomic { /* rank 1 dies and finds an empty disk */
       crashes && !ended && known[1] ->
       crashes--;
       lose_rank(1);
       for (i : 0 .. SLOTS - 1) {
         ck_model[SLOTS + i] = 0;
         ck_generation[SLOTS + i] = 0
       }
       i = 0
     }
#endif
  od
}

/* --- The planner. */

inline may_die() {
  if
  :: true
  :: crashes -> goto died
  fi
}

/* Appends, then syncs. */
inline append(what, content) {
  if
  :: true -> written(what, content)
  :: crashes -> goto died /* the record is torn off, */
  :: crashes -> written(what, content); goto died /* or came to the disk without a sync */
  fi
}

/* What is meant for a process that has died does not reach the next one. */
inline tell(r, what, a, b) {
  if
  :: !fresh[r] ->
     assert(nfull(to_rank[2 * (r) + log_starts % 2]));
     to_rank[2 * (r) + log_starts % 2]!what, epoch, a, b
  :: else
  fi
}

inline tell_both(what, a, b) {
  tell(0, what, a, b);
  may_die();
  tell(1, what, a, b)
}

#ifdef KEEP_TRAINED
#define log_settled log_trained
#else
#define log_settled log_durable
#endif

/* All steps that the log has and the rank has not, then the plan. */
inline give_bins() {
  for (r : 0 .. 1) {
    for (i : r_given[r] + 1 .. log_last + (plan -> 1 : 0)) {
      assert(i > log_settled); /* the source was not told yet that it may forget the bytes */
      bin[at(r, i)] = (i <= log_last -> log_commit[i] : plan);
      bin_epoch[at(r, i)] = epoch
    }
    r_given[r] = log_last + (plan -> 1 : 0)
  }
  r = 0;
  i = 0
}

/* Who belongs to a job of which a rank is missing must start anew, too. */
inline end_job() {
  phase = COLLECT;
  plan = 0;
  for (r : 0 .. 1) {
    if
    :: r_generation[r] ->
       forget_rank(r);
       tell(r, END, log_generation, 0);
       may_die()
#ifdef BUG_STATE_FORGOTTEN
    :: else -> forget_rank(r)
#else
    :: else /* what it has said stands: nobody asks it again */
#endif
    fi
  }
  r = 0
}

#ifdef BUG_TRAINED_UNHEARD
byte told[2];
#define new_trained(r) (trained[r] != told[r])
#define hear_trained(r) r_trained[r] = (phase == RUN && new_trained(r) -> trained[r] : r_trained[r]); told[r] = trained[r]
#elif defined(BUG_TRAINED_BY_LOG)
/* What the log calls trained an earlier job may have trained. */
#define new_trained(r) (trained[r] > r_trained[r])
#define hear_trained(r) r_trained[r] = max(trained[r], r_trained[r])
#else
#define new_trained(r) (trained[r] != r_trained[r])
#define hear_trained(r) r_trained[r] = trained[r]
#endif
#define news(r) (fresh[r] || answer[r] || (has(heard, r) && known[r] == epoch && \
  (new_trained(r) || saved[r] != r_saved[r] || staged[r] != r_staged[r])))

inline hear() {
  if
  :: fresh[r] ->
     fresh[r] = 0;
     forget_rank(r);
     tell(r, HELLO, log_durable, 0);
     if
     :: phase == RUN -> may_die(); end_job()
     :: else
     fi
  :: !fresh[r] && answer[r] -> /* rank_state */
     answer[r] = 0;
     heard = with(heard, r);
     r_generation[r] = generation[r];
     r_committed[r] = committed[r];
     r_given[r] = committed[r];
     r_staged[r] = staged[r];
#ifdef BUG_TRAINED_BY_LOG
     r_trained[r] = (generation[r] -> max(trained[r], min(committed[r], log_trained)) : trained[r]);
#else
     r_trained[r] = trained[r];
#endif
#ifdef BUG_TRAINED_UNHEARD
     told[r] = trained[r];
#endif
     new_saved(r, saved[r])
  :: !fresh[r] && !answer[r] -> /* step_staged, step_trained, checkpoint_saved */
     for (i : 1 .. log_last) { /* made again from its record, it is the same */
       assert(!has(staged[r], i) || !held[at(r, i)] || held[at(r, i)] == log_commit[i])
     }
     i = 0;
     r_staged[r] = staged[r];
     hear_trained(r);
     new_saved(r, saved[r])
  fi;
  r = 0
}

#define none_begun (r_generation[0] == 0 && r_generation[1] == 0)
#define same_begun (r_generation[0] == log_generation && r_generation[1] == log_generation)
#ifdef BUG_NEXT_DIFFERS
#define same_next true
#else
#define same_next (r_trained[0] == log_durable && r_trained[1] == log_durable)
#endif

/* All ranks have answered. */
inline begin_job() {
  if
  :: none_begun && same_next ->
#ifdef KEEP_TRAINED
     if
     :: log_last > log_durable -> append(ROLLED_BACK, 0)
     :: else
     fi;
#endif
     append(GENERATION, 0);
#ifdef BUG_DURABLE_NOT_FROZEN
     r_saved[0] = 0;
     r_saved[1] = 0;
#endif
     epoch = epoch_of_log;
     phase = RUN;
     r_staged[0] = 0;
     r_staged[1] = 0;
     r_generation[0] = log_generation;
     r_generation[1] = log_generation;
     may_die();
     tell(0, BEGIN, log_generation, r_committed[0] + 1);
     may_die();
     tell(1, BEGIN, log_generation, r_committed[1] + 1);
     give_bins()
  :: none_begun && !same_next ->
     phase = REFUSED;
#ifndef DISK_LOSS
     assert(false)
#endif
  :: !none_begun && same_begun -> phase = RUN; give_bins()
  :: !none_begun && !same_begun -> end_job()
  fi
}

#define commit_due(r) (phase == RUN && r_committed[r] < log_last && has(r_staged[r], r_committed[r] + 1))
#define may_commit (phase == RUN && plan && has(r_staged[0], log_last + 1) && has(r_staged[1], log_last + 1))
#define may_cut (phase == RUN && !plan && log_last < STEPS && log_last <= all_trained + AHEAD)
#ifdef BUG_DURABLE_NOT_FROZEN
#define may_be_durable (all_saved > log_durable && all_saved <= log_trained)
#else
#define may_be_durable (phase == RUN && all_saved > log_durable && all_saved <= log_trained)
#endif
#ifdef BUG_END_BY_LOG
#define may_end (phase == RUN && log_trained == STEPS && log_durable + EVERY > STEPS)
#else
#define may_end (phase == RUN && log_trained == STEPS && all_trained == STEPS && log_durable + EVERY > STEPS)
#endif

inline check_end() {
  model_of_log(STEPS);
  for (r : 0 .. 1) { /* unless it has died a moment ago */
    assert(generation[r] != log_generation || (done[r] == STEPS && model[r] == m))
  }
  for (r : 1 .. STEPS) { /* nothing counts twice */
    assert(!has(log_rolled, log_commit[r]));
    for (i : r + 1 .. STEPS) {
      assert(log_commit[r] != log_commit[i])
    }
  }
#ifdef WITNESS_DONE
  assert(log_generation <= CRASHES); /* each crash cost a generation: this can be */
#endif
  r = 0;
  i = 0;
  m = 0
}

/* All that follows from what it has heard. */
inline pump() {
  if
  :: phase == COLLECT && heard == BOTH -> begin_job()
  :: else
  fi;
  do
  :: phase == RUN && all_trained > log_trained -> append(TRAINED, 0)
  :: may_be_durable && !(phase == RUN && all_trained > log_trained) ->
     s = all_saved;
     append(DURABLE, s);
     s = 0;
     may_die();
     tell_both(RECORDED, log_durable, 0)
  :: commit_due(0) -> r_committed[0]++; tell(0, COMMIT, r_committed[0], 0); may_die()
  :: commit_due(1) && !commit_due(0) -> r_committed[1]++; tell(1, COMMIT, r_committed[1], 0); may_die()
  :: may_commit ->
#ifdef BUG_COMMIT_BEFORE_SYNC
     tell_both(COMMIT, log_last + 1, 0);
     r_committed[0]++;
     r_committed[1]++;
#endif
     append(COMMITTED, plan);
     plan = 0;
     may_die()
  :: may_cut && !may_commit ->
     /* What is there to cut differs from time to time. */
     plan = 1 + 5 * ((epoch + log_generation) % 3);
     do
     :: in_log(plan) || has(log_rolled, plan) -> plan = plan % GROUPS + 1
     :: else -> break
     od;
     give_bins()
  :: may_end ->
     phase = DONE;
     check_end()
  :: else -> break
  od
}

proctype planner() {
  byte r, i, s;
  int m;
  do
  :: atomic {
       phase == DOWN ->
       append(OPEN, 0);
       phase = COLLECT;
       epoch = epoch_of_log;
       drain(log_starts % 2);
       drain(2 + log_starts % 2);
       may_die();
       tell_both(HELLO, log_durable, 0)
     }
  :: atomic {
       (phase == COLLECT || phase == RUN) && (news(0) || news(1)) ->
       if
       :: news(0) -> r = 0
       :: news(1) -> r = 1
       fi;
       hear();
       pump()
     }
  :: atomic {
       false ->
died:  crashes--;
       if
       :: planner_dies()
       :: power_fails()
       fi;
       r = 0;
       i = 0;
       s = 0;
       m = 0
     }
  :: ended -> break
  od
}

/* --- A rank. */

/* What still comes of an earlier planner is refused from here on. That may as well be now: it makes
 * fewer states. LATE lets it come when it likes. */
inline forget_late(r) {
#ifndef LATE
  if
  :: e == epoch ->
     drain(2 * r + 1 - log_starts % 2);
     for (i : 1 .. STEPS) {
       if
       :: bin_epoch[at(r, i)] < e ->
          bin[at(r, i)] = 0;
          bin_epoch[at(r, i)] = 0
       :: else
       fi
     }
  :: else
  fi
#else
  skip
#endif
}

/* A checkpoint of all ranks is newer: the older ones go, if it is here. */
inline delete_older(r) {
  for (i : 1 .. SLOTS - 1) {
    if
    :: i * EVERY < a && ck_generation[slot(r, a)] ->
       ck_model[r * SLOTS + i] = 0;
       ck_generation[r * SLOTS + i] = 0
    :: else
    fi
  }
  i = 0
}

/* What is staged for an earlier epoch is thrown away. */
inline obey(r) {
  if
  :: e > known[r] ->
     known[r] = e;
     for (i : committed[r] + 1 .. STEPS) {
       held[at(r, i)] = 0;
       staged[r] = without(staged[r], i)
     }
     i = 0;
     forget_late(r)
  :: else
  fi
}

/* Says where it stands. */
inline greet(r) {
  if
  :: generation[r] == 0 ->
     /* load_checkpoint */
     done[r] = (a == 0 || ck_generation[slot(r, a)] -> a : 0);
     model[r] = (done[r] -> ck_model[slot(r, a)] : 0);
#ifndef DISK_LOSS
     assert(done[r] == a);
#endif
     trained[r] = done[r];
     committed[r] = done[r];
     delete_older(r)
  :: else
  fi;
  for (i : done[r] + 1 .. committed[r]) { /* what it holds committed is what the log says */
    assert(e != epoch || held[at(r, i)] == log_commit[i])
  }
  i = 0;
  answer[r] = (e == epoch)
}

/* A free trainer goes into the next step. */
inline hand_on(r) {
  if
  :: generation[r] && trainer[r] == IDLE && handed[r] < committed[r] ->
     handed[r]++;
     entered[r] = 2 * handed[r] - 1;
     trainer[r] = ENTERED
  :: else
  fi
}

#ifdef BUG_OLD_PLANNER_OBEYED
#define fenced(r) (kind == HELLO && e < known[r])
#else
#define fenced(r) (e < known[r])
#endif

inline take(r, channel) {
  channel?kind, e, a, b;
  if
  :: fenced(r) -> assert(kind != HELLO || e != epoch) /* planner_refused: never to the one that has the log */
  :: !fenced(r) && kind == HELLO -> obey(r); greet(r)
  :: !fenced(r) && kind == COMMIT ->
     assert(a == committed[r] + 1 && held[at(r, a)]);
     committed[r] = a;
     hand_on(r)
  :: !fenced(r) && kind == BEGIN ->
     assert(generation[r] == 0);
     obey(r);
     generation[r] = a;
     handed[r] = b - 1;
     entered[r] = 0;
     entered_generation[r] = a;
     hand_on(r)
  :: !fenced(r) && kind == END ->
     if
     :: a == generation[r] -> lose_rank(r) /* exit 75, and is started again */
     :: else
     fi
  :: !fenced(r) && kind == RECORDED -> delete_older(r)
  fi;
  kind = 0;
  e = 0;
  a = 0;
  b = 0
}

#ifdef BUG_LOWER_EPOCH_STAGED
#define fits(r, s) (s > committed[r])
#else
#define fits(r, s) (s > committed[r] && bin_epoch[at(r, s)] >= known[r])
#endif
#define offered(r, s) (bin[at(r, s)] != 0)

inline fetch(r, s) {
  if
  :: fits(r, s) ->
     e = bin_epoch[at(r, s)]; /* a higher one than is known leads from now on */
     obey(r);
     e = 0;
     held[at(r, s)] = (held[at(r, s)] -> held[at(r, s)] : bin[at(r, s)]); /* it may come twice */
     staged[r] = with(staged[r], s)
  :: else
  fi;
  bin[at(r, s)] = 0;
  bin_epoch[at(r, s)] = 0
}

#define goes_on(r) (entered_generation[other(r)] == generation[r] && entered[other(r)] >= entered[r])

proctype rank(byte r) {
  byte i, s, e, a, b;
  mtype kind;
  do
  :: atomic { nempty(to_rank[2 * r]) && !ended -> take(r, to_rank[2 * r]) }
  :: atomic { nempty(to_rank[2 * r + 1]) && !ended -> take(r, to_rank[2 * r + 1]) }
#ifdef STALE
  :: atomic { nempty(from_stale[r]) && !ended -> take(r, from_stale[r]) }
#endif

  /* Feeder. */
  :: atomic {
       known[r] && !ended && (offered(r, 1) || offered(r, 2) || offered(r, 3) || offered(r, 4)) ->
       if
       :: offered(r, 1) -> s = 1
       :: !offered(r, 1) && offered(r, 2) -> s = 2
       :: !offered(r, 1) && !offered(r, 2) && offered(r, 3) -> s = 3
       :: else -> s = 4
       fi;
       fetch(r, s);
       s = 0
     }

  /* Trainer. */
  :: atomic {
       trainer[r] == ENTERED && goes_on(r) && !ended ->
       s = handed[r];
       assert(held[at(r, s)] == log_commit[s]); /* what the log says, */
       assert(s == done[r] + 1);                /* none is skipped, none is applied twice */
       done[r] = s;
       model[r] = model[r] * 16 + held[at(r, s)];
       applied[r] = (s > log_trained -> with(applied[r], s) : applied[r]);
       held[at(r, s)] = 0;
       entered[r] = 2 * s;
       trainer[r] = APPLIED;
       s = 0
     }
  :: atomic {
       trainer[r] == APPLIED && goes_on(r) && !ended ->
       trained[r] = done[r];
       trainer[r] = (done[r] % EVERY == 0 -> SAVE : IDLE);
       hand_on(r)
     }
  :: atomic {
       trainer[r] == SAVE && !ended ->
       ck_model[slot(r, done[r])] = model[r];
       ck_generation[slot(r, done[r])] = generation[r];
       saved[r] = done[r];
       trainer[r] = IDLE;
       hand_on(r)
     }
  :: atomic { generation[r] && broken == generation[r] && !ended -> lose_rank(r) } /* a collective fails: exit 75 */
  :: ended -> break
  od
}

#ifdef STALE
/* A planner of another time that wakes up: it says what it likes, with an epoch of its own. */
proctype stale() {
  byte r;
end:
  if
  :: atomic {
       !ended && log_starts > 1 ->
       if
       :: r = 0
       :: r = 1
       fi;
       if
       :: from_stale[r]!HELLO, 1, 0, 0
       :: known[r] > 1 -> from_stale[r]!COMMIT, 1, committed[r] + 1, 0
       :: known[r] > 1 -> from_stale[r]!BEGIN, 1, log_generation + 1, 1
       :: known[r] > 1 -> from_stale[r]!END, 1, log_generation, 0
       :: known[r] > 1 -> from_stale[r]!RECORDED, 1, STEPS, 0
       fi
     }
  fi
}
#endif

init {
  atomic {
    select(crashes : 0 .. CRASHES);
#ifdef STALE
    log_starts = 1;
    run stale();
#endif
    run planner();
    run rank(0);
    run rank(1);
    run accidents()
  }
}
