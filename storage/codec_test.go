package storage_test

import (
	"github.com/amble-crawler/amble/internal/cluster/journal/records"
	"github.com/amble-crawler/amble/storage"
)

func init() { storage.TestCodec = records.Codec{} }
