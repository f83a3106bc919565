package gpu_test

import _ "dmir/compile/target/all"
