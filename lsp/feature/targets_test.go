package feature_test

import _ "dmir/compile/target/all"
