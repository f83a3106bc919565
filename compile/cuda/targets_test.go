package cuda_test

import _ "dmir/compile/target/all"
