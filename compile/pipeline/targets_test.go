package pipeline_test

import _ "dmir/compile/target/all"
