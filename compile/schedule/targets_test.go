package schedule_test

import _ "dmir/compile/target/all"
