package storage

// Cause is why a request to a host failed, in one number: an HTTP status, or a Reason. The zero value says nothing. The numbers are stored, in the
// politeness of hosts.
type Cause uint16

// causeReason is added to a Reason: no HTTP status is as large.
const causeReason = 1000

// StatusCause is that of an HTTP status.
func StatusCause(status int) Cause {
	if status <= 0 || status >= causeReason {
		return 0
	}
	return Cause(status)
}

// ReasonCause is that of a Reason.
func ReasonCause(r Reason) Cause {
	if r == ReasonNone {
		return 0
	}
	return causeReason + Cause(r)
}

// Status is the HTTP status; 0: it is another cause.
func (c Cause) Status() int {
	if c < causeReason {
		return int(c)
	}
	return 0
}

// Reason is the Reason; ReasonNone: it is another cause.
func (c Cause) Reason() Reason {
	if c < causeReason {
		return ReasonNone
	}
	return Reason(c - causeReason)
}
