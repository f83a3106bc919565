package op

func normalizations() []*Def { return nil }
func attentions() []*Def     { return nil }
func movements() []*Def      { return nil }
func sources() []*Def        { return nil }
func controls() []*Def       { return nil }
func kernels() []*Def        { return nil }
