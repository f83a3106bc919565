package conformance

import _ "dmir/compile/target/all"
