#!/bin/bash
# The reward is 1 if every check passes. -I: nothing that lies in the workdir gets into the checks.
if python3 -I /tests/check.py; then reward=1; else reward=0; fi
echo "$reward" > /logs/verifier/reward.txt
