package config

import "time"

// URLFrontier configures the service for clients of the URLFrontier protocol.
type URLFrontier struct {
	Listen    string        `mapstructure:"listen"`
	Token     string        `mapstructure:"token" is:"secret file"`
	TLSCert   string        `mapstructure:"tls_cert" is:"path"`
	TLSKey    string        `mapstructure:"tls_key" is:"path"`
	Plaintext bool          `mapstructure:"plaintext"`
	Robots    bool          `mapstructure:"robots" default:"true"`
	Delay     time.Duration `mapstructure:"delay" range:"0s..168h" default:"1s"`
}
