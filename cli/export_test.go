package cli

// RulesPage is for the test of docs/RULES.md.
var RulesPage = rulesPage
