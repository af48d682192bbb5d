package config

// Cluster says which cluster the process is a node of. Without servers it is none, and the rest has no
// effect.
type Cluster struct {
	URLs        []string `mapstructure:"urls"`
	Name        string   `mapstructure:"name" default:"crawl"`
	Node        string   `mapstructure:"node"`
	Shards      int      `mapstructure:"shards" range:"1..65536" default:"64"`
	Replicas    int      `mapstructure:"replicas" default:"3"`
	Weight      int      `mapstructure:"weight" range:"1..65535" default:"1"`
	Credentials string   `mapstructure:"credentials" is:"path"`
	TLSCA       string   `mapstructure:"tls_ca" is:"path"`
	TLSCert     string   `mapstructure:"tls_cert" is:"path"`
	TLSKey      string   `mapstructure:"tls_key" is:"path"`
	Embed       Embed    `mapstructure:"embed"`
}

// Embed says whether a NATS server runs inside the process.
type Embed struct {
	Listen       string   `mapstructure:"listen"`
	ListenRoutes string   `mapstructure:"listen_routes"`
	Routes       []string `mapstructure:"routes"`
	Directory    string   `mapstructure:"directory" is:"path"`
}

// InCluster reports whether the process is a node of a cluster: it has NATS servers to connect to, or
// one of its own.
func (c *Config) InCluster() bool { return len(c.Cluster.URLs) > 0 || c.Cluster.Embed.Listen != "" }
