//go:build !core

package main

import (
	"context"
	"path/filepath"

	"github.com/amble-crawler/amble/internal/modules/oncomplete"
	"github.com/amble-crawler/amble/internal/modules/webhook"
	"github.com/amble-crawler/amble/internal/output/delivery"
	outputs "github.com/amble-crawler/amble/internal/output/formats"
)

// deliveryModule is a delivery that open makes; nil: the settings ask for none.
func deliveryModule(open func(*crawling) (delivery.Delivery, error)) (module, *delivery.Handle) {
	running := new(delivery.Handle)
	return module{closed: running.End,
		serve: func(ctx context.Context, k *crawling) (context.Context, func(), error) {
			d, err := open(k)
			if err != nil || d == nil {
				return ctx, func() {}, err
			}
			return ctx, running.Start(d), nil
		}}, running
}

// onCompleteModule runs output.on_complete.
func onCompleteModule() (module, *delivery.Handle) {
	return deliveryModule(func(k *crawling) (delivery.Delivery, error) {
		c := k.config
		if c.Output.OnComplete == "" {
			return nil, nil
		}
		return oncomplete.New(oncomplete.Options{
			Command: c.Output.OnComplete, Timeout: c.Output.OnCompleteTimeout, Log: k.log,
			Dirs:    delivery.Dirs(c.DataDir, c.OutputDir(), c.InCluster()),
			Journal: filepath.Join(c.DataDir, oncomplete.JournalFile),
			Formats: outputs.All(), Except: webhook.Name,
		})
	})
}

// webhookModule posts the output of the format webhook, and alarms.
func webhookModule(alarms *webhook.Alarms) (module, *delivery.Handle) {
	return deliveryModule(func(k *crawling) (delivery.Delivery, error) {
		c := k.config
		if c.Output.Webhook.URL == "" {
			return nil, nil
		}
		return webhook.New(webhook.Options{URL: c.Output.Webhook.URL, Secret: c.Output.Webhook.Secret, Alarms: alarms,
			Agent: c.UserAgent(programVersion()), Dirs: delivery.Dirs(c.DataDir, c.OutputDir(), c.InCluster()),
			Log: k.log}), nil
	})
}
