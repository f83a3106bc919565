package interop_test

import _ "dmir/compile/target/all"
