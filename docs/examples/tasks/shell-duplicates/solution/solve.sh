#!/bin/bash
cp /solution/duplicates.sh /app/duplicates.sh
