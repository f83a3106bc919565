package worker

import _ "dmir/compile/target/all"
