package refactor_test

import _ "dmir/compile/target/all"
