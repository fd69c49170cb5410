#!/bin/bash
mkdir -p dist
echo '#!/bin/bash' > dist/app
for file in src/*.sh; do
    sed "s/@VERSION@/$BUILD_VERSION/" $file >> dist/app
done
