//go:build !core

package alarms

import (
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/console/access"
	"github.com/amble-crawler/amble/internal/service/server"
)

// List is what the API answers.
type List struct {
	Alarms     []Alarm            `json:"alarms" doc:"the worst first"`
	Incomplete *server.Incomplete `json:"incomplete,omitempty" doc:"in a cluster: the nodes that have not answered"`
}

// Register registers the operation.
func (w *Watch) Register(s *server.Server, api huma.API) {
	op := server.Operation("GET", "/alarms", "alarms-list", "What needs somebody's attention")
	op.Description = "Conditions of the table in docs/OPERATING.md that hold, each with what to do. In a cluster " +
		"those of all nodes."
	list := func(context.Context) List { return List{Alarms: append([]Alarm{}, w.Alarms()...)} }
	server.HandleOfEachNode(s, api, op, list, merge)
}

// merge makes one list of those of all nodes of a cluster.
func merge(parts map[string]List, lacking *server.Incomplete) List {
	all := List{Alarms: []Alarm{}, Incomplete: lacking}
	for i := 0; lacking != nil && i < len(lacking.Nodes); i++ {
		a := lostNode()
		if a.Node, a.Text = lacking.Nodes[i], "there is no answer"; i < len(lacking.Why) {
			a.Text = lacking.Why[i]
		}
		all.Alarms = append(all.Alarms, a)
	}
	for _, node := range server.SortedKeys(parts) {
		for _, a := range parts[node].Alarms {
			a.Node = node
			all.Alarms = append(all.Alarms, a)
		}
	}
	sortAlarms(all.Alarms)
	return all
}

// lostNode returns the alarm of a node that does not answer.
func lostNode() (a Alarm) {
	for _, c := range Table() {
		if c.Code == LostNode {
			a = Alarm{Code: c.Code, Title: c.Title, Severity: c.Severity, Do: c.Do}
		}
	}
	return a
}

// Status returns the rows of the status of a running crawl.
func Status(ctx context.Context, c *config.Config) (rows [][]string, err error) {
	client, err := (&access.Crawl{Config: c}).Dial(ctx)
	if err != nil || client == nil {
		return nil, err
	}
	defer client.Close()
	var list List
	if err := client.Command(ctx, http.MethodGet, "/alarms", nil, &list); err != nil {
		return nil, fmt.Errorf("list the alarms: %w", err)
	}
	for _, a := range list.Alarms {
		text := a.Title + ": " + a.Text
		if a.Node != "" {
			text = a.Node + ": " + text
		}
		rows = append(rows, []string{string(a.Severity), console.Printable(text)}, []string{"", a.Do})
	}
	return rows, nil
}
