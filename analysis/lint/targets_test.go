package lint_test

import _ "dmir/compile/target/all"
