package suite

import _ "dmir/compile/target/all"
