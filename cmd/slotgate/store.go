package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"maps"
	"slices"

	"github.com/slotgate/slotgate/gate/admin"
	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/gate/store/memstore"
	"github.com/slotgate/slotgate/gate/store/redisstore"
	"github.com/slotgate/slotgate/rules"
)

// openStore opens the configured store, which may be away.
func openStore(config rules.StoreConfig, metrics *admin.Metrics, log *slog.Logger) (store.Store, error) {
	if config.Kind == "memory" {
		return memstore.New(memstore.Options{MaxMemory: int64(config.MaxMemory), Observe: metrics.StoreCall}), nil
	}
	options := redisOptions(config)
	options.Logger, options.Observe = log, metrics.StoreCall
	redis, err := redisstore.Open(context.Background(), options)
	if err != nil {
		return nil, err // and no store: a nil *Store is not a nil Store
	}
	return redis, nil
}

func redisOptions(config rules.StoreConfig) redisstore.Options {
	var secure *tls.Config
	if config.TLS {
		secure = &tls.Config{MinVersion: tls.VersionTLS12} // the system's roots, the name in each address
	}
	return redisstore.Options{
		Mode:           redisstore.Mode(config.Mode),
		Addresses:      config.Addresses,
		MasterName:     config.MasterName,
		Username:       config.Username,
		Password:       config.Password,
		DB:             config.DB,
		TLS:            secure,
		Prefix:         config.Prefix,
		Secret:         config.Secret,
		EncryptKey:     config.EncryptKey,
		EncryptOldKeys: config.EncryptOldKeys,
		Timeout:        config.Timeout,
	}
}

// inspectStore looks at the servers of a store that has any, and at whose slots they
// hold.
func inspectStore(ctx context.Context, config *rules.Config) (store.Inspection, error) {
	return redisstore.Inspect(ctx, redisOptions(config.Store), slices.Sorted(maps.Keys(config.Pools)))
}

// inspectServers looks at the servers alone.
func inspectServers(ctx context.Context, config *rules.Config) (store.Inspection, error) {
	return redisstore.Inspect(ctx, redisOptions(config.Store), nil)
}
