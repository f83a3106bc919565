package refactor
func offerTypes(*selection) []Action{return nil}
func applyTypes(*selection,string)(*Change,error){return nil,nil}
func offerForm(*selection) []Action{return nil}
func applyForm(*selection,string)(*Change,error){return nil,nil}
