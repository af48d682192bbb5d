package cluster

import "slices"

// granter divides the shared limits that hash to one shard among the nodes that use them. The owner
// of the shard has it.
type granter struct {
	o      *Options
	isOver func(Member) bool // reports whether a membership is known to have ended
	ready  Instant           // grants of an earlier granter that this one does not know have ended by then
	limits map[string]*sharedLimit
}

// newGranter returns a granter that does not know what was granted before. All of that has ended by
// the instant ready.
func newGranter(ready Instant, o *Options, isOver func(Member) bool) *granter {
	return &granter{o: o, isOver: isOver, ready: ready, limits: make(map[string]*sharedLimit)}
}

// sharedLimit is a limit and the nodes that use it. Holders are in the order in which they got
// their first slot, waiting users in the order in which they began to wait.
type sharedLimit struct {
	limit   Limit   // the strictest of the users
	lastEnd Instant // the last request may have ended then
	users   []*user
}

// user is a node that has slots of a limit, or waits for some.
type user struct {
	Member
	limit  Limit
	number uint64
	slots  int
	want   int
	until  Instant // the slots count until then
	heard  Instant
	share  int     // what the newest grant let it keep
	sent   Instant // the newest grant
}

// handle takes a request and returns the grants that follow from it: the answer, grants to users that
// have waited, and the wish that holders keep less. Before it is ready, the granter only confirms what
// users have. The caller adds For.
func (g *granter) handle(now Instant, r GrantRequest) []Grant {
	l := g.limits[r.Key]
	if l == nil {
		if now < g.ready && r.Keep <= 0 || len(g.limits) >= g.o.Limits {
			return nil
		}
		l = &sharedLimit{lastEnd: g.ready}
		g.limits[r.Key] = l
	}
	l.expire(now, g)
	u := l.find(r)
	if r.User.Incarnation < u.Incarnation || r.User.Incarnation == u.Incarnation && r.Number < u.number {
		return nil // late
	}
	u.limit = r.Limit
	l.updateLimit()
	waited := u.waits(now, g.o)
	if r.User.Incarnation > u.Incarnation || r.Number > u.number {
		g.take(now, l, u, r)
	}
	u.want, u.heard = min(max(r.Want, 0), l.limit.Slots), now
	if u.waits(now, g.o) && !waited {
		l.moveLast(u)
	}
	if now >= g.ready {
		return l.serve(now, g.o, r.Key, u)
	}
	if u.slots > 0 {
		return []Grant{l.grant(now, g.o, r.Key, u, l.limit.Slots)}
	}
	return nil
}

// take takes what a request says for the first time. If it is repeated, it is the same.
func (g *granter) take(now Instant, l *sharedLimit, u *user, r GrantRequest) {
	kept := min(max(r.Keep, 0), u.slots)
	switch {
	case now < g.ready:
		kept = min(max(r.Keep, 0), l.limit.Slots) // as an earlier granter has granted
	case r.User.Incarnation > u.Incarnation:
		kept = 0 // the requests of the earlier membership have ended
	}
	if kept < u.slots && (r.Used || r.User.Incarnation > u.Incarnation) {
		l.freed(now)
	}
	u.Member, u.slots, u.number, u.until = r.User, kept, r.Number, now.Add(g.o.TTL)
}

// sweep forgets limits that nobody uses.
func (g *granter) sweep(now Instant) {
	for key, l := range g.limits {
		if l.expire(now, g); len(l.users) == 0 && now >= l.notBefore(g.o) {
			delete(g.limits, key)
		}
	}
}

// find returns the user that makes a request. A new one has no slots.
func (l *sharedLimit) find(r GrantRequest) *user {
	for _, u := range l.users {
		if u.Node == r.User.Node {
			return u
		}
	}
	u := &user{Member: r.User}
	l.users = append(l.users, u)
	return u
}

// updateLimit finds the limit that keeps those of all users. That of the last one stays when it goes.
func (l *sharedLimit) updateLimit() {
	for i, u := range l.users {
		if i == 0 {
			l.limit = u.limit
		}
		l.limit = l.limit.stricter(u.limit)
	}
}

// expire takes back slots that have not been confirmed for a TTL, or whose membership is over, and
// forgets users without any.
func (l *sharedLimit) expire(now Instant, g *granter) {
	l.users = slices.DeleteFunc(l.users, func(u *user) bool {
		over := g.isOver(u.Member)
		if u.slots > 0 && (over || u.until <= now) {
			u.slots = 0
			l.freed(min(u.until, now))
		}
		return u.slots == 0 && (over || u.want == 0 || now.Sub(u.heard) >= g.o.TTL)
	})
	l.updateLimit()
}

// freed records that a user gave back slots at an instant. Its last request may have ended then.
func (l *sharedLimit) freed(at Instant) { l.lastEnd = max(l.lastEnd, at) }

// notBefore returns the earliest start of the next request of a user that gets a slot.
func (l *sharedLimit) notBefore(o *Options) Instant { return l.lastEnd.Add(o.stretch(l.limit.Delay)) }

// waits reports whether a user has no slot and wants one. A user that has not repeated its request
// may be gone, so it does not count.
func (u *user) waits(now Instant, o *Options) bool {
	return u.slots == 0 && u.want > 0 && now.Sub(u.heard) <= 2*o.Retry
}

func (l *sharedLimit) moveLast(u *user) {
	i := slices.Index(l.users, u)
	l.users = append(slices.Delete(l.users, i, i+1), u)
}

// grant tells a user what it has, and how much it should keep.
func (l *sharedLimit) grant(now Instant, o *Options, key string, u *user, share int) Grant {
	u.share, u.sent = share, now
	return Grant{Key: key, User: u.Member, Number: u.number, Slots: u.slots,
		After: max(0, l.notBefore(o).Sub(now)), Share: share}
}

// serve grants the free slots: to the users that wait, the longest wait first, then to the one that
// made the request. It answers that one in any case. If users still wait, holders learn how much
// they should keep.
func (l *sharedLimit) serve(now Instant, o *Options, key string, from *user) (out []Grant) {
	free, active, waiting := l.limit.Slots, 0, 0
	for _, u := range l.users {
		free -= u.slots
		if u.slots > 0 || u.waits(now, o) {
			active++
		}
	}
	share := max(1, l.limit.Slots/max(active, 1))
	send := func(u *user, share int) { out = append(out, l.grant(now, o, key, u, share)) }
	var granted []*user
	for _, u := range l.users {
		if !u.waits(now, o) {
			continue
		}
		if free <= 0 {
			waiting++
			continue
		}
		u.slots = min(u.want, share, free)
		u.until = now.Add(o.TTL)
		free -= u.slots
		granted = append(granted, u)
	}
	for _, u := range granted {
		if l.moveLast(u); u != from {
			send(u, l.limit.Slots)
		}
	}
	switch {
	case active == 1 && from.slots > 0:
		from.slots += max(0, free)
	case waiting == 0 && from.want > from.slots:
		from.slots += max(0, min(free, from.want-from.slots))
	}
	if waiting == 0 {
		send(from, l.limit.Slots)
		return out
	}
	if from.slots == 0 {
		send(from, l.limit.Slots)
	}
	l.recall(now, o, share, waiting, from, send)
	return out
}

// recall makes room for so many users that wait: holders are to keep their share at most, and if
// that is not enough, those that have held longest are to keep nothing. The wish is repeated only
// after a while.
func (l *sharedLimit) recall(now Instant, o *Options, share, waiting int, from *user, send func(*user, int)) {
	for _, u := range l.users {
		waiting -= max(0, u.slots-share)
	}
	for _, u := range l.users {
		keep := share
		if u.slots > 0 && u.slots <= share && waiting > 0 {
			waiting -= u.slots
			keep = 0
		}
		isNew := u.share != keep || now.Sub(u.sent) >= o.Retry
		if u.slots > keep && isNew || u == from && u.slots > 0 {
			send(u, keep)
		}
	}
}

// allowance is what the node has of a shared limit.
type allowance struct {
	key       string
	limit     Limit
	waiting   int     // requests that wait for a slot
	hold      bool    // the slot is not given back unused
	using     int     // requests in flight
	slots     int     // requests that may be in flight
	until     Instant // the slots are valid until then
	notBefore Instant
	since     Instant // the slots are held since then
	used      bool    // since then
	share     int     // what the granter lets it keep
	number    uint64  // of the newest request
	requested int     // what it wanted
	sent      Instant // when it was sent first
	repeated  Instant // when it was sent last
	answered  bool    // there is an answer to it
}

// want returns how many slots there is a use for.
func (a *allowance) want() int { return a.using + a.waiting }

// expire gives up slots that are no longer valid. The granter learns that from another request, so an
// answer to an earlier one is of no use.
func (a *allowance) expire(now Instant) {
	if a.slots > 0 && now >= a.until {
		a.slots, a.number = 0, 0
	}
}

// isValid reports whether requests may start as far as the time is concerned.
func (a *allowance) isValid(now Instant, o *Options) bool {
	return now >= a.notBefore && a.until.Sub(now) >= o.LastStart
}

// keep returns how many slots the node keeps. One that it has not used yet stays for a moment,
// because otherwise users that wait for each other would pass a slot around without a request.
func (a *allowance) keep(now Instant, o *Options) int {
	share := a.share
	if share == 0 && !a.used && a.waiting > 0 &&
		(a.hold || now < max(a.since, a.notBefore).Add(o.LastStart)) {
		share = 1
	}
	return min(a.slots, max(a.using, share))
}

// isDue reports whether the granter needs to hear from the node: to get slots, to keep them, or to
// give some back. A request is repeated only after a while, unless more is wanted.
func (a *allowance) isDue(now Instant, o *Options) bool {
	if a.keep(now, o) < a.slots {
		return true
	}
	more := a.answered && a.want() > a.requested
	if a.number != 0 && now.Sub(a.repeated) < o.Retry && !more || a.want() == 0 && !a.isUnheard(now, o) {
		return false
	}
	return a.slots == 0 || !a.answered || a.want() > a.slots && a.slots < a.share || a.isOld(now, o)
}

// isUnheard reports whether the granter may count slots that the node has not: those that it gave back, or was granted
// when it did not wait any more. Nobody else would get them before they expire, so the node says it again.
func (a *allowance) isUnheard(now Instant, o *Options) bool {
	return a.number != 0 && !a.answered && now.Sub(a.sent) < o.TTL
}

// isOld reports whether half of the time is over for which the newest request has slots, or could have.
func (a *allowance) isOld(now Instant, o *Options) bool {
	valid := o.TTL - o.Margin
	if a.answered && a.slots > 0 {
		valid = a.until.Sub(a.sent)
	}
	return now.Sub(a.sent) >= valid/2
}

// request returns the request that tells the granter what the node keeps and wants. It is the newest one
// again unless something is given back or that one is old: an answer to an earlier request is of no use,
// and may be under way for longer than Retry.
func (a *allowance) request(now Instant, o *Options, user Member, number uint64) GrantRequest {
	if kept := a.keep(now, o); a.number == 0 || kept < a.slots || a.want() > 0 && a.isOld(now, o) {
		a.slots, a.number, a.sent, a.answered = kept, number, now, false
	}
	a.requested, a.repeated = a.want(), now
	return GrantRequest{Key: a.key, Limit: a.limit, User: user, Number: a.number, Keep: a.slots, Used: a.used,
		Want: a.requested}
}

// apply takes an answer to the newest request.
func (a *allowance) apply(now Instant, o *Options, g Grant) {
	a.expire(now)
	until := a.sent.Add(min(o.TTL-o.Margin, g.For))
	if g.Number != a.number || now >= until {
		return
	}
	if a.slots == 0 && g.Slots > 0 {
		a.since, a.used = now, a.using > 0
	}
	a.slots = max(a.slots, g.Slots)
	a.until = max(a.until, until)
	a.notBefore = max(a.notBefore, now.Add(min(max(g.After, 0), never)))
	a.share, a.answered = max(g.Share, 0), true
}
