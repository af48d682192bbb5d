//go:build !core

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/identity"
	"github.com/amble-crawler/amble/internal/service/server"
)

// Register registers the operation of the API that says what signing changed. In a cluster each node answers for its
// own requests.
func (p Program) Register(s *server.Server, api huma.API) {
	op := server.Operation("GET", "/identity/origins", "identity-origins", "What signed requests changed, by origin")
	op.Description = "Origins over https that refused a request or asked for signatures, of the last 8,192 or more " +
		"that were requested since the process began: responses before and after requests were signed. Nothing is " +
		"listed while identity.sign is never. " + server.TrailerIncomplete + " lists the nodes of a " +
		"cluster that have not answered."
	server.HandleOfNodes[identity.OriginAnswers](s, api, op, p.writeOrigins)
}

// Origins returns what signed requests changed at each origin that refused one or asked for signatures, since the
// process began. Any goroutine may call it.
func (p Program) Origins() []identity.OriginAnswers {
	signer := p.signer.Load()
	if signer == nil {
		return nil
	}
	return signer.Origins()
}

func (p Program) writeOrigins(_ context.Context, _ *struct{}, t *server.Stream) error {
	t.Begin()
	for _, o := range p.Origins() {
		if err := t.Lines.Write(&o); err != nil {
			return err
		}
	}
	return nil
}

func (c *commands) originsCommand() *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:   "origins",
		Short: "Show what signed requests changed, by origin",
		Long: `Show the origins that refused requests or asked for signatures, as the running crawl has seen them
since it began: how many unsigned and signed requests each of them served and refused, and which wall it has.

Exit code 0: done. 1: no crawl runs, or it does not answer. 2: wrong usage or settings.`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.origins(command.Context(), command.OutOrStdout(), asJSON)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return command
}

func (c *commands) origins(ctx context.Context, w io.Writer, asJSON bool) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	rows := [][]string{{"ORIGIN", "UNSIGNED: SERVED", "REFUSED", "SIGNED: SERVED", "REFUSED", "ASKED", "WALL"}}
	lines := json.NewEncoder(w)
	lacking, err := eachOrigin(ctx, settings, func(o *identity.OriginAnswers) error {
		if asJSON {
			return lines.Encode(o)
		}
		n := func(n uint64) string { return console.Grouped(int(n)) }
		rows = append(rows, []string{o.Origin, n(o.Unsigned.Served), n(o.Unsigned.Refused), n(o.Signed.Served),
			n(o.Signed.Refused), map[bool]string{true: "yes"}[o.Asked], o.Wall})
		return nil
	})
	if err != nil {
		return err
	}
	var b strings.Builder
	switch {
	case asJSON:
	case len(rows) == 1:
		b.WriteString("No origin has refused a request over https or asked for signatures.\n")
	default:
		console.WriteTable(&b, rows)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if lacking != "" {
		return console.Exit(console.ExitProblem, fmt.Errorf("nodes that have not answered: %s", lacking))
	}
	return nil
}

// eachOrigin calls each for every origin that the running crawl lists. lacking are the nodes of a cluster that have not
// answered.
func eachOrigin(ctx context.Context, c *config.Config, each func(*identity.OriginAnswers) error) (lacking string,
	err error) {
	client, err := server.Dial(ctx, c.DataDir, c.Server.Token)
	if err != nil {
		return "", console.Exit(console.ExitProblem, fmt.Errorf("ask the running crawl: %w", err))
	}
	defer client.Close()
	trailer, err := server.EachLine(ctx, client, server.BasePath+"/identity/origins", nil, each)
	if err != nil {
		return "", console.Exit(console.ExitProblem, fmt.Errorf("ask the running crawl: %w", err))
	}
	return trailer.Get(server.TrailerIncomplete), nil
}

// Status returns a row of the status of a running crawl: what signed requests changed. There is none if nothing is
// signed, or nobody refuses anything.
func (p Program) Status(ctx context.Context, c *config.Config) ([][]string, error) {
	if c.Identity.Sign == identity.SignNever {
		return nil, nil
	}
	var all []identity.OriginAnswers
	_, err := eachOrigin(ctx, c, func(o *identity.OriginAnswers) error {
		all = append(all, *o)
		return nil
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return [][]string{{"signed", summary(all)}}, nil
}

// summary says in a line what signed requests changed.
func summary(all []identity.OriginAnswers) string {
	var unsigned, signed identity.Answers
	served := 0
	for _, o := range all {
		if o.Signed.Served > 0 {
			served++
		}
		unsigned.Served, unsigned.Refused = unsigned.Served+o.Unsigned.Served, unsigned.Refused+o.Unsigned.Refused
		signed.Served, signed.Refused = signed.Served+o.Signed.Served, signed.Refused+o.Signed.Refused
	}
	text := func(a identity.Answers) string {
		return console.Grouped(int(a.Served)) + " served, " + console.Grouped(int(a.Refused)) + " refused"
	}
	return fmt.Sprintf("%s of %s that refused or asked serve signed requests; requests signed: %s; not signed: %s",
		console.Grouped(served), console.Plural(len(all), "origin"), text(signed), text(unsigned))
}
