package cluster

import "slices"

// granter divides the shared limits that hash to one shard among the shards that use them. The
// owner of the shard has it.
type granter struct {
	o      *Options
	ready  Instant // a TTL after the claim: what an earlier granter has granted is no longer valid
	limits map[string]*sharedLimit
}

// sharedLimit is a limit and the shards that use it. Holders are in the order in which they got
// their first slot, waiting users in the order in which they began to wait.
type sharedLimit struct {
	limit     Limit
	notBefore Instant // the earliest start of the next request, if there is a delay
	users     []*user
}

// user is a shard that has slots of a limit, or waits for some.
type user struct {
	shard  Shard
	epoch  Sequence
	number uint64
	slots  int
	want   int
	until  Instant // the slots count until then
	heard  Instant
	share  int     // what the newest grant let it keep
	sent   Instant // the newest grant
}

// handle takes a request and appends the grants that follow from it to out: the answer, grants to
// users that have waited, and the wish that holders keep less.
func (g *granter) handle(now Instant, r GrantRequest, out []Action) []Action {
	if now < g.ready {
		return out
	}
	l := g.limits[r.Key]
	if l == nil {
		if len(g.limits) >= g.o.Limits {
			return out
		}
		l = &sharedLimit{limit: g.o.Limit(r.Key)}
		l.notBefore = g.ready.Add(g.o.stretch(l.limit.Delay))
		g.limits[r.Key] = l
	}
	l.expire(now, g.o)
	u := l.find(r)
	if r.Epoch < u.epoch || r.Epoch == u.epoch && r.Number <= u.number {
		return out // repeated, or late
	}
	kept := min(max(r.Keep, 0), u.slots)
	if r.Epoch > u.epoch {
		kept = 0 // the engine of the earlier epoch has ended
	}
	if kept < u.slots {
		l.freed(now, g.o)
	}
	waited := u.waits(now, g.o)
	u.slots, u.want, u.epoch, u.number, u.heard = kept, min(max(r.Want, 0), l.limit.Slots), r.Epoch, r.Number, now
	u.until = now.Add(g.o.TTL)
	if u.waits(now, g.o) && !waited {
		l.moveLast(u)
	}
	return l.serve(now, g.o, r.Key, u, out)
}

// sweep forgets limits that nobody uses.
func (g *granter) sweep(now Instant) {
	for key, l := range g.limits {
		if l.expire(now, g.o); len(l.users) == 0 && now >= l.notBefore {
			delete(g.limits, key)
		}
	}
}

// find returns the user that makes a request. A new one has no slots.
func (l *sharedLimit) find(r GrantRequest) *user {
	for _, u := range l.users {
		if u.shard == r.User {
			return u
		}
	}
	u := &user{shard: r.User, epoch: r.Epoch}
	l.users = append(l.users, u)
	return u
}

// expire takes back slots that have not been confirmed for a TTL, and forgets users without any.
func (l *sharedLimit) expire(now Instant, o *Options) {
	l.users = slices.DeleteFunc(l.users, func(u *user) bool {
		if u.slots > 0 && u.until <= now {
			u.slots = 0
			l.freed(u.until, o)
		}
		return u.slots == 0 && (u.want == 0 || now.Sub(u.heard) >= o.TTL)
	})
}

// freed records that a user gave back slots at an instant. Its last request may have ended then.
func (l *sharedLimit) freed(at Instant, o *Options) {
	l.notBefore = max(l.notBefore, at.Add(o.stretch(l.limit.Delay)))
}

// waits reports whether a user has no slot and wants one. A user that has not repeated its request
// may be gone, so it does not count.
func (u *user) waits(now Instant, o *Options) bool {
	return u.slots == 0 && u.want > 0 && now.Sub(u.heard) <= 2*o.Retry
}

func (l *sharedLimit) moveLast(u *user) {
	i := slices.Index(l.users, u)
	l.users = append(slices.Delete(l.users, i, i+1), u)
}

// serve grants the free slots: to the users that wait, the longest wait first, then to the one that
// made the request. It answers that one in any case. If users still wait, holders learn how much
// they should keep.
func (l *sharedLimit) serve(now Instant, o *Options, key string, from *user, out []Action) []Action {
	free, active, waiting := l.limit.Slots, 0, 0
	for _, u := range l.users {
		free -= u.slots
		if u.slots > 0 || u.waits(now, o) {
			active++
		}
	}
	share := max(1, l.limit.Slots/max(active, 1))
	send := func(u *user, share int) {
		u.share, u.sent = share, now
		out = append(out, SendGrant{Grant{Key: key, User: u.shard, Epoch: u.epoch, Number: u.number,
			Slots: u.slots, After: max(0, l.notBefore.Sub(now)), Share: share}})
	}
	var granted []*user
	for _, u := range l.users {
		if !u.waits(now, o) {
			continue
		}
		if free == 0 {
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
		from.slots += free
	case waiting == 0 && from.want > from.slots:
		from.slots += min(free, from.want-from.slots)
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

// allowance is what a shard has of a shared limit.
type allowance struct {
	key       string
	want      int     // requests that the shard would make at a time
	using     int     // requests in flight
	slots     int     // requests that it may have in flight
	until     Instant // the slots are valid until then
	notBefore Instant
	since     Instant // the slots are held since then
	used      bool    // since then
	share     int     // what the granter lets it keep
	number    uint64  // of the newest request
	sent      Instant // the newest request
	answered  bool    // there is an answer to it
}

// expire gives up slots that are no longer valid.
func (a *allowance) expire(now Instant) {
	if now >= a.until {
		a.slots = 0
	}
}

// mayStart reports whether one more request may start.
func (a *allowance) mayStart(now Instant, o *Options) bool {
	return a.using < a.slots && now >= a.notBefore && a.until.Sub(now) >= o.LastStart
}

// keep returns how many slots the shard keeps. One that it has not used yet stays for a moment,
// because otherwise users that wait for each other would pass a slot around without a request.
func (a *allowance) keep(now Instant, o *Options) int {
	share := a.share
	if share == 0 && !a.used && a.want > 0 && now < max(a.since, a.notBefore).Add(o.LastStart) {
		share = 1
	}
	return min(a.slots, max(a.using, share))
}

// isDue reports whether the granter needs to hear from the shard: to get slots, to keep them, or to
// give some back.
func (a *allowance) isDue(now Instant, o *Options) bool {
	if a.keep(now, o) < a.slots {
		return true
	}
	if a.number != 0 && now.Sub(a.sent) < o.Retry || a.want == 0 && a.using == 0 {
		return false
	}
	return a.slots == 0 || !a.answered || a.want > a.slots && a.slots < a.share ||
		a.until.Sub(now) < (o.TTL-o.Margin)/2
}

// request returns the request that tells the granter what the shard keeps and wants.
func (a *allowance) request(now Instant, o *Options, h *holding, number uint64) GrantRequest {
	a.slots = a.keep(now, o)
	a.number, a.sent, a.answered = number, now, false
	return GrantRequest{Key: a.key, User: h.shard, Epoch: h.opened, Number: number, Keep: a.slots, Want: a.want}
}

// apply takes an answer to the newest request.
func (a *allowance) apply(now Instant, o *Options, g Grant) {
	until := a.sent.Add(o.TTL - o.Margin)
	if g.Number != a.number || now >= until {
		return
	}
	a.expire(now)
	if a.slots == 0 && g.Slots > 0 {
		a.since, a.used = now, false
	}
	a.slots = max(a.slots, g.Slots)
	a.until = max(a.until, until)
	a.notBefore = max(a.notBefore, now.Add(min(max(g.After, 0), never)))
	a.share, a.answered = max(g.Share, 0), true
}
