# SPDX-License-Identifier: Apache-2.0
"""Readers of the bodies that come off the wire, made by flatc from schema/*.fbs: python/generate_wire.py makes them
again."""
