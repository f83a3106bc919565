package cli_test

import _ "dmir/compile/target/all"
