package workspace_test

import _ "dmir/compile/target/all"
