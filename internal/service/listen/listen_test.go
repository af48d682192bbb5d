package listen

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

func TestLimitersAreBounded(t *testing.T) {
	now := time.Now()
	l := NewLimiters(2, 1, func() time.Time { return now })
	for i := range 3 * maxClients {
		r := &http.Request{RemoteAddr: fmt.Sprintf("10.%d.%d.%d:80", i>>16, i>>8&255, i&255)}
		l.Allow(ClientOf(r, false))
	}
	assert.AtMost(t, len(l.clients), maxClients+1, "clients are kept")
	assert.Equal(t, ClientOf(&http.Request{RemoteAddr: "[2001:db8::1]:80"}, false),
		ClientOf(&http.Request{RemoteAddr: "[2001:db8::ffff:2]:80"}, false), "are of one network")
}

// Connections whose requests are at work are not closed for others.
func TestGateKeepsWhoIsAtWork(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	g := NewGate(l, 2)
	defer g.Close()
	dial := func() (net.Conn, *guest) {
		c := must.Get(net.Dial("tcp", l.Addr().String()))(t)
		t.Cleanup(func() { c.Close() })
		v := must.Get(g.Accept())(t)
		return c, v.(*guest)
	}
	_, busy := dial()
	busy.work(true)
	_, first := dial()
	_, second := dial()
	assert.True(t, first.left && !busy.left && !second.left, "first %v, busy %v, second %v", first.left, busy.left,
		second.left)
	second.work(true)
	assert.True(t, g.admit(nopConn{}) == nil, "there was room besides two busy ones")
	busy.work(false)
	assert.True(t, g.admit(nopConn{}) != nil && busy.left, "who is not at work any more did not make room")
}

type nopConn struct{ net.Conn }

func (nopConn) Close() error { return nil }
