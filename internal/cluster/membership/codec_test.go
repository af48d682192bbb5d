package membership

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/amble-crawler/amble/internal/cluster"
	"github.com/amble-crawler/amble/internal/testing/assert"
	"github.com/amble-crawler/amble/internal/testing/must"
)

var (
	goldenWriter  = writer{process: 0x0102030405060708, id: 300}
	goldenKey     = cluster.Key{Process: 0x1112131415161718, Incarnation: 1 << 20, Weight: 258, Sealed: true}
	goldenSilent  = cluster.Key{Incarnation: 1 << 20, Sealed: true, Silent: true}
	goldenEpoch   = cluster.Epoch{Owner: cluster.Member{Node: "a-1", Incarnation: 77}}
	goldenRelease = cluster.Epoch{Owner: goldenEpoch.Owner, Released: true,
		Handover: &cluster.Handover{Ready: -3, Limits: []cluster.HandoverLimit{
			{Key: "192.0.2.1", Limit: cluster.Limit{Slots: 4, Delay: time.Second}, LastEnd: -time.Second,
				Users: []cluster.HandoverUser{{User: goldenEpoch.Owner, Number: 9, Slots: 2, Left: time.Second}}},
			{Key: "x"}}}}
	goldenFault = cluster.Epoch{Owner: goldenEpoch.Owner,
		Fault: &cluster.Fault{Times: 3, Kind: "log", Sequence: 300, Reason: "bad"}}
	goldenRequest = cluster.GrantRequest{Key: "192.0.2.1", Limit: cluster.Limit{Slots: 4, Delay: time.Second},
		User: goldenEpoch.Owner, Number: 9, Keep: 1, Used: true, Want: 3}
	goldenGrant = cluster.Grant{Key: "192.0.2.1", User: goldenEpoch.Owner, Number: 9, Slots: 2, For: 2 * time.Second,
		After: time.Second,
		Share: 1}
	goldenList = []setting{{"cluster.shards", "64"}, {"traps", ""}}
)

// TestBrokenHandover: a count of limits that are not there costs nothing.
func TestBrokenHandover(t *testing.T) {
	b := encodeEpoch(writer{}, cluster.Epoch{Owner: cluster.Member{Node: "a", Incarnation: 1}, Released: true,
		Handover: &cluster.Handover{}})
	b = binary.AppendUvarint(b[:len(b)-1], 1<<16)
	b = append(b, bytes.Repeat([]byte{0xff}, 1<<17)...)
	if _, e, err := decodeEpoch(b); err == nil || len(e.Handover.Limits) > 1 {
		t.Errorf("%d limits are made of none: %v", len(e.Handover.Limits), err)
	}
}

// TestGolden: messages of this version are these bytes, and mean the same for ever.
func TestGolden(t *testing.T) {
	grants := appendGrant(appendGrantRequest(beginGrants(goldenWriter.process), goldenRequest), goldenGrant)
	golden := &Reservation{w: goldenWriter}
	for _, tt := range []struct {
		name   string
		want   string
		have   []byte
		decode func(b []byte) (any, error)
		value  any
	}{
		{"key", "016b0102030405060708ac0211121314151617188080400102" + "01", encodeKey(goldenWriter, goldenKey),
			func(b []byte) (any, error) { w, k, err := decodeKey(b); return []any{w, k}, err },
			[]any{goldenWriter, goldenKey}},
		{"seal of another", "016b0102030405060708ac02000000000000000080804000" + "0002",
			encodeKey(goldenWriter, goldenSilent),
			func(b []byte) (any, error) { w, k, err := decodeKey(b); return []any{w, k}, err },
			[]any{goldenWriter, goldenSilent}},
		{"epoch", "01650102030405060708ac02" + "03612d31" + "4d0000", encodeEpoch(goldenWriter, goldenEpoch),
			func(b []byte) (any, error) { w, e, err := decodeEpoch(b); return []any{w, e}, err },
			[]any{goldenWriter, goldenEpoch}},
		{"release", "01650102030405060708ac02" + "03612d31" + "4d0101" + "0502" + "093139322e302e322e31" +
			"048094ebdc03" +
			"ffa7d6b907" + "01" + "03612d31" + "4d09" + "0280a8d6b907" + "0178" + "0000" + "00" + "00",
			encodeEpoch(goldenWriter, goldenRelease),
			func(b []byte) (any, error) { w, e, err := decodeEpoch(b); return []any{w, e}, err },
			[]any{goldenWriter, goldenRelease}},
		{"quarantine", "01650102030405060708ac02" + "03612d31" + "4d02" + "03" + "036c6f67" + "ac02" + "03626164",
			encodeEpoch(goldenWriter, goldenFault),
			func(b []byte) (any, error) { w, e, err := decodeEpoch(b); return []any{w, e}, err },
			[]any{goldenWriter, goldenFault}},
		{"grants", "0167010203040506070800" +
			"00093139322e302e322e31" + "03612d31" + "4d09" + "048094ebdc03" + "010103" +
			"01093139322e302e322e31" + "03612d31" + "4d09" + "0280a8d6b907" + "8094ebdc03" + "01", grants,
			func(b []byte) (any, error) { return decodeGrants(b) }, []any{goldenRequest, goldenGrant}},
		{"settings", "01730102030405060708ac0202" + "0e636c75737465722e736861726473" + "023634" + "05747261707300",
			encodeSettings(goldenWriter, goldenList),
			func(b []byte) (any, error) { return decodeSettings(b) }, goldenList},
		// A cluster that is reserved for an import, or for an export with the settings of the nodes.
		{"import", "01730102030405060708ac0201" + "0e636c75737465722e696d706f7274" +
			"1030313032303330343035303630373038",
			encodeSettings(goldenWriter, []setting{golden.by(settingImport)}),
			func(b []byte) (any, error) { list, err := decodeSettings(b); return []any{list, reservedBy(list)}, err },
			[]any{[]setting{{"cluster.import", "0102030405060708"}}, errImporting}},
		{"export", "01730102030405060708ac0202" + "0e636c75737465722e6578706f7274" +
			"1030313032303330343035303630373038" +
			"0e636c75737465722e736861726473" + "023634",
			encodeSettings(goldenWriter, []setting{golden.by(settingExport), goldenList[0]}),
			func(b []byte) (any, error) { list, err := decodeSettings(b); return []any{list, reservedBy(list)}, err },
			[]any{[]setting{{"cluster.export", "0102030405060708"}, goldenList[0]}, errExporting}},
		{"command", "0163000000000000000000" + "01", encodeCommand(Drain),
			func(b []byte) (any, error) { return decodeCommand(b) }, Drain},
		{"state", "0104626f6f74000000000000000a000000000000000b000000000000000c", encodeState(12, "boot", 10, 11),
			func(b []byte) (any, error) { return decodeState(b, "boot", 10, 11) }, cluster.Sequence(12)},
	} {
		assert.Equal(t, hex.EncodeToString(tt.have), tt.want, tt.name)
		b := must.Get(hex.DecodeString(tt.want))(t)
		if v, err := tt.decode(b); err != nil || !reflect.DeepEqual(v, tt.value) {
			t.Errorf("%s: %+v, %v, want %+v", tt.name, v, err, tt.value)
		}
		for n := range b {
			if _, err := tt.decode(b[:n]); err == nil && !(tt.name == "grants" && (n == 11 || n == 37)) {
				t.Errorf("%s: the first %d bytes are a message", tt.name, n)
			}
		}
		assert.Fails(tt.decode(append(b, 9)))(t, nil, tt.name, "a byte too many")
		b[0]++
		if _, err := tt.decode(b); err == nil || tt.name != "state" && !errors.Is(err, errProtocol) {
			t.Errorf("%s: another version: %v", tt.name, err)
		}
	}
}

// TestHostile: what is out of bounds is refused.
func TestHostile(t *testing.T) {
	long := strings.Repeat("x", 5000)
	many := beginGrants(1)
	for range maxGrants + 1 {
		many = appendGrantRequest(many, goldenRequest)
	}
	stranger := goldenRequest
	stranger.User.Node = long
	for name, b := range map[string][]byte{
		"long key":  appendGrantRequest(beginGrants(1), cluster.GrantRequest{Key: long}),
		"many":      many,
		"long name": appendGrantRequest(beginGrants(1), stranger),
		"kind":      append(beginGrants(1), 2, 0, 0, 0, 0, 0, 0),
	} {
		parts, err := decodeGrants(b)
		assert.True(t, err != nil && parts == nil, "%s: %v, %v", name, parts, err)
	}
	for _, node := range []string{"", "a.b", "*", long} {
		_, _, err := decodeEpoch(encodeEpoch(goldenWriter, cluster.Epoch{Owner: cluster.Member{Node: node}}))
		assert.True(t, err != nil, "an epoch of node %.10q", node)
	}
	seal := encodeKey(goldenWriter, goldenSilent)
	seal[len(seal)-1]++
	_, _, err := decodeKey(seal)
	assert.True(t, err != nil, "a seal of neither the node nor another")
	assert.Fails(decodeSettings(encodeSettings(goldenWriter, make([]setting, maxSettings+1))))(t, nil,
		"too many settings")
	count := append(begin(kindSettings, goldenWriter), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1)
	assert.Fails(decodeSettings(count))(t, nil, "a count without settings")
}

// FuzzDecode: any bytes are refused, or mean the same when they are encoded again.
func FuzzDecode(f *testing.F) {
	f.Add(encodeKey(goldenWriter, goldenKey))
	f.Add(encodeKey(goldenWriter, goldenSilent))
	f.Add(encodeEpoch(goldenWriter, goldenEpoch))
	f.Add(encodeEpoch(goldenWriter, goldenRelease))
	f.Add(appendGrant(appendGrantRequest(beginGrants(1), goldenRequest), goldenGrant))
	f.Add(encodeSettings(goldenWriter, goldenList))
	f.Add(encodeState(12, "boot", 10, 11))
	f.Fuzz(func(t *testing.T, b []byte) {
		if w, k, err := decodeKey(b); err == nil {
			w2, k2, err := decodeKey(encodeKey(w, k))
			assert.True(t, w2 == w && k2 == k && err == nil, "%+v, %+v, %v", k, k2, err)
		}
		if w, e, err := decodeEpoch(b); err == nil {
			w2, e2, err := decodeEpoch(encodeEpoch(w, e))
			assert.True(t, w2 == w && reflect.DeepEqual(e2, e) && err == nil, "%+v, %+v, %v", e, e2, err)
		}
		if parts, err := decodeGrants(b); err == nil {
			again := beginGrants(1)
			for _, part := range parts {
				switch p := part.(type) {
				case cluster.GrantRequest:
					again = appendGrantRequest(again, p)
				case cluster.Grant:
					again = appendGrant(again, p)
				}
			}
			parts2, err := decodeGrants(again)
			assert.True(t, reflect.DeepEqual(parts2, parts) && err == nil, "%+v, %+v, %v", parts, parts2, err)
			assert.AtMost(t, len(parts), maxGrants, "parts")
		}
		if list, err := decodeSettings(b); err == nil {
			list2, err := decodeSettings(encodeSettings(goldenWriter, list))
			assert.True(t, reflect.DeepEqual(list2, list) && err == nil, "%+v, %+v, %v", list, list2, err)
		}
		if incarnation, err := decodeState(b, "boot", 10, 11); err == nil {
			assert.Returns(decodeState(encodeState(incarnation, "boot", 10, 11), "boot", 10, 11))(t, incarnation)
		}
	})
}

// TestLimits: numbers beyond the bounds are cut, not refused by the reader.
func TestLimits(t *testing.T) {
	b := appendGrantRequest(beginGrants(1), cluster.GrantRequest{Key: "k", Keep: math.MaxInt, Want: math.MaxInt})
	parts, err := decodeGrants(b)
	assert.True(t, err == nil && len(parts) == 1, "%v, %v", parts, err)
}
