//go:build !core

package command

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/identity"
	"github.com/amble-crawler/amble/internal/system"
)

// commands are the commands below amble identity.
type commands struct {
	Program
	load func() (*config.Config, error)
}

// Commands returns the commands of the identity. load loads the settings.
func (p Program) Commands(load func() (*config.Config, error)) []*cobra.Command {
	c := &commands{Program: p, load: load}
	return []*cobra.Command{c.newCommand(), c.checkCommand(), c.exportCommand(), c.serveCommand(), c.emitCommand(),
		c.originsCommand()}
}

// defaultLead is how long a new key is published before it is used: caches keep the key directory for a day.
const defaultLead = 25 * time.Hour

func (c *commands) newCommand() *cobra.Command {
	lead := defaultLead
	command := &cobra.Command{
		Use:   "new",
		Short: "Make a key to sign requests with",
		Long: `Make a key of Ed25519 in the directory ` + identity.KeysDir + ` of data_dir, readable for its owner
alone. The first key is used at once. A further one takes the place of the key in use after --in, so that verifiers have
its public half by then; both are published meanwhile, and the old one for a day after that. A running crawl takes it up
by itself.

On another machine that fetches under the same name, make a key there, and copy its public half from the output here
as NAME.pub.jwk into the same directory: it is published, and nothing is signed with it here.

Exit code 0: the key is made. 1: it cannot be written. 2: wrong usage, settings or keys.`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.make(command.OutOrStdout(), lead) },
	}
	command.Flags().DurationVar(&lead, "in", lead, "`time` until a further key is used")
	return command
}

func (c *commands) make(w io.Writer, lead time.Duration) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	if lead < 0 || lead > 365*24*time.Hour {
		return console.Usagef("--in is %s, should be 0s to 8760h", lead)
	}
	keys, err := c.keyring(settings)
	if err != nil {
		return err
	}
	from := c.Now().Truncate(time.Second)
	if _, err := keys.Signing(c.Now()); err == nil {
		from = from.Add(lead)
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	k, err := identity.NewKey(seed, from)
	if err != nil {
		return err
	}
	path, err := keys.Add(k)
	if err != nil {
		return err
	}
	public, err := identity.Directory([]*identity.Key{k})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "The key %s is in %s, and is used from %s on.\nIts public half:\n%s\n", k.ID, path,
		from.UTC().Format(time.RFC3339), strings.TrimSuffix(strings.TrimPrefix(string(public), `{"keys":[`), "]}"))
	return err
}

func (c *commands) checkCommand() *cobra.Command {
	asJSON := false
	command := &cobra.Command{
		Use:   "check",
		Short: "Check whether others can verify this crawler",
		Long: `Fetch the public documents as a verifier does, and look up the names of the addresses: each must have
a name that leads back to it. The addresses of this machine must be in identity.addresses. One line each.

Exit code 0: all is well. 1: something is not. 2: wrong usage, settings or keys.`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.check(command, asJSON) },
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return command
}

func (c *commands) check(command *cobra.Command, asJSON bool) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	profile, err := c.profile(settings)
	if err != nil {
		return err
	}
	keys, err := c.keyring(settings)
	if err != nil {
		return err
	}
	failed := 0
	var rows [][]string
	lines := json.NewEncoder(command.OutOrStdout())
	for _, f := range c.checker(profile, keys).Run(command.Context()) {
		mark := "ok"
		if !f.OK {
			failed++
			mark = "FAILS"
		}
		if asJSON {
			if err := lines.Encode(f); err != nil {
				return err
			}
		}
		rows = append(rows, []string{mark, console.Printable(f.Subject), console.Printable(f.Text)})
	}
	if !asJSON {
		var b strings.Builder
		console.WriteTable(&b, rows)
		if _, err := io.WriteString(command.OutOrStdout(), b.String()); err != nil {
			return err
		}
	}
	if failed > 0 {
		return console.Exit(console.ExitProblem, nil)
	}
	return nil
}

func (c *commands) exportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "export DIRECTORY",
		Short: "Write the public documents as files for a web server",
		Long: `Write the bot page, the address list, the card and the key directory as files, for the web server at
identity.url. Serve .well-known/http-message-signatures-directory with the media type
application/http-message-signatures-directory+json, and the .json files with application/json.

A file cannot carry the signature of the key directory, which lasts for a week only and proves that whoever serves the
keys has them. Verifiers then believe the TLS certificate alone; some ignore such keys. amble identity serve signs.
After amble identity new, or a change of the settings, export again.

Exit code 0: done. 1: a file cannot be written. 2: wrong usage, settings or keys.`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usagef("%q takes one directory", command.CommandPath())
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error { return c.export(command.OutOrStdout(), args[0]) },
	}
}

func (c *commands) export(w io.Writer, dir string) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	profile, err := c.profile(settings)
	if err != nil {
		return err
	}
	keys, err := c.keyring(settings)
	if err != nil {
		return err
	}
	documents, err := identity.Documents(profile, keys, c.Now())
	if err != nil {
		return err
	}
	for _, d := range documents {
		path := filepath.Join(dir, filepath.FromSlash(d.File))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("export the identity: %w", err)
		}
		if err := system.ReplaceFile(path, d.Content, 0o644, func() error { return nil }); err != nil {
			return fmt.Errorf("export the identity: %w", err)
		}
		if _, err := fmt.Fprintf(w, "%s\n", path); err != nil {
			return err
		}
	}
	return nil
}

func (c *commands) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the public documents",
		Long: `Serve the bot page, the address list, the card and the key directory on identity.listen until a signal
ends it. A crawl that runs does that itself; this command is for a machine that does not crawl, and for clusters.
Nothing else can be reached on this listener.

Exit code 0: a signal ended it. 2: wrong usage, settings or keys, or the address cannot be used.`,
		Args: console.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return c.serve(command) },
	}
}

func (c *commands) serve(command *cobra.Command) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	if settings.Identity.Listen == "" {
		return console.Exit(console.ExitUsage, fmt.Errorf("%s: identity.listen is empty; set it to an address such as "+
			":8443", settings.Source("identity.listen")))
	}
	ctx, stop := console.UntilInterrupted(command.Context())
	defer stop()
	log, _ := console.NewLogger(command.ErrOrStderr(), settings.Log)
	end, err := c.Serve(ctx, settings, log)
	if err != nil {
		return err
	}
	<-ctx.Done()
	end()
	return nil
}

func (c *commands) emitCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "emit " + strings.Join(identity.Targets(), "|"),
		Short: "Print what the operator of a site configures to let this crawler in",
		Long: `Print what the operator of a site pastes into the configuration of a wall, so that it knows this
crawler by its User-Agent and its addresses: a policy of Anubis, an expression for Cloudflare, variables of nginx, or a
group for robots.txt.

Exit code 0: done. 2: wrong usage or settings.`,
		ValidArgs: identity.Targets(),
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(identity.Targets(), args[0]) {
				return console.Usagef("%q takes one of %s", command.CommandPath(),
					strings.Join(identity.Targets(), ", "))
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			settings, err := c.load()
			if err != nil {
				return err
			}
			profile, err := c.profile(settings)
			if err != nil {
				return err
			}
			if len(profile.Addresses) == 0 && args[0] != "robots" {
				return console.Exit(console.ExitUsage, fmt.Errorf("%s: identity.addresses is empty, so nobody could "+
					"tell this crawler from others with its name", settings.Source("identity.addresses")))
			}
			_, err = io.WriteString(command.OutOrStdout(), profile.Emit(args[0]))
			return err
		},
	}
	return command
}
