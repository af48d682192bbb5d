package membership

const childURL = "AMBLE_TEST_CHILD_URL"

func runChild() {}
