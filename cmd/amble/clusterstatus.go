package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/amble-crawler/amble/internal/membership"
	"github.com/amble-crawler/amble/internal/server"
)

// json returns the survey as the API has it.
func (v *survey) json() server.ClusterView { return server.NewClusterView(v.cluster, v.Survey, v.logs) }

// counts returns how many shards nobody owns, and how many belong to another node than they should.
func (v *survey) counts() (free, moving int) {
	for _, s := range v.Shards {
		if s.Node == "" {
			free++
		} else if s.Goal != "" && s.Goal != s.Node {
			moving++
		}
	}
	return free, moving
}

// print prints the survey as tables: all shards, or those that need attention.
func (v *survey) print(w io.Writer, all bool) error {
	var b strings.Builder
	free, moving := v.counts()
	fmt.Fprintf(&b, "cluster %s: %s, %s of %s without owner, %d moving\n", v.cluster, plural(len(v.Members), "node"),
		grouped(free), plural(len(v.Shards), "shard"), moving)
	fmt.Fprintf(&b, "registers and logs on %s\n\n", v.serversText())
	rows := [][]string{{"node", "state", "shards", "weight", "heartbeat"}}
	for _, m := range v.Members {
		owns := grouped(m.Owns)
		if m.Gets > 0 {
			owns += fmt.Sprintf(", gets %d", m.Gets)
		}
		rows = append(rows, []string{m.Node, memberText(m.State), owns, grouped(int(m.Weight)), span(m.Beat) + " ago"})
	}
	writeTable(&b, rows)
	v.writeLogs(&b)
	v.writeShards(&b, all)
	_, err := io.WriteString(w, b.String())
	return err
}

// memberText is the state of a member with what it means.
func memberText(s membership.MemberState) string {
	switch s {
	case membership.Doubted:
		return "doubted: makes no request until it is heard of again"
	case membership.Dead:
		return "dead: others take its shards"
	}
	return string(s)
}

func (v *survey) serversText() string {
	if len(v.Replicas) == 0 {
		return "one NATS server"
	}
	var servers []string
	for _, r := range v.Replicas {
		text := r.Server
		switch {
		case r.Leader:
			text += " (leader)"
		case r.Offline:
			text += " (OFFLINE)"
		case !r.Current:
			text += fmt.Sprintf(" (BEHIND by %s)", plural(r.Lag, "message"))
		}
		servers = append(servers, text)
	}
	return plural(len(servers), "NATS server") + ": " + strings.Join(servers, ", ")
}

// writeLogs says how much log and snapshots there are.
func (v *survey) writeLogs(b *strings.Builder) {
	var records, bytes, snapshots uint64
	number, largest := 0, 0
	for i := range v.logs {
		log := &v.logs[i]
		records, bytes = records+log.Records, bytes+log.Bytes
		if log.Records > v.logs[largest].Records {
			largest = i
		}
		if !log.At.IsZero() {
			number++
			snapshots += uint64(log.Snapshot.Size)
		}
	}
	fmt.Fprintf(b, "\nlog since the snapshots: %s, %s", plural(records, "record"), size(bytes))
	if records > 0 {
		fmt.Fprintf(b, "; most in shard %d: %s, %s", largest, plural(v.logs[largest].Records, "record"),
			size(v.logs[largest].Bytes))
	}
	fmt.Fprintf(b, "\nsnapshots: %d, %s\n", number, size(snapshots))
}

// writeShards lists all shards, or those that move and those that nobody owns.
func (v *survey) writeShards(b *strings.Builder, all bool) {
	rows := [][]string{{"shard", "owner", "since", "log", "snapshot"}}
	for i, s := range v.Shards {
		moves := s.Goal != "" && s.Goal != s.Node
		if !all && s.Node != "" && !moves {
			continue
		}
		owner, since, snapshot := s.Node, "", "none"
		if !s.Since.IsZero() {
			since = span(v.At.Sub(s.Since)) + " ago"
		}
		if owner == "" {
			owner = "nobody"
		}
		if moves {
			owner += ", moves to " + s.Goal
		}
		log := &v.logs[i]
		if !log.At.IsZero() {
			snapshot = size(uint64(log.Snapshot.Size)) + ", " + span(v.At.Sub(log.At)) + " ago"
		}
		rows = append(rows, []string{grouped(i), owner, since, plural(log.Records, "record") + ", " + size(log.Bytes), snapshot})
	}
	if len(rows) > 1 {
		b.WriteString("\n")
		writeTable(b, rows)
	}
}
