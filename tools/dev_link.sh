#!/bin/sh
# Puts a build's libraries beside the Python sources, so that the source tree can be imported.
# usage: tools/dev_link.sh BUILD_DIR
set -eu
build=$(cd "${1:?usage: tools/dev_link.sh BUILD_DIR}" && pwd)
package=$(cd "$(dirname "$0")/../torchtpu" && pwd)
for library in "$build"/_C*.so "$build"/libsofttpu.so; do
  if [ -e "$library" ]; then ln -sf "$library" "$package/"; fi
done
