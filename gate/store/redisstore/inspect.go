package redisstore

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/slotgate/slotgate/gate/store"
	"github.com/slotgate/slotgate/luascripts"
)

const (
	// scanStep is how many keys a server looks at in one go, a fraction of a millisecond
	// in which it does nothing else.
	scanStep = 1000
	// mostSteps bounds the keys of one server that are looked at.
	mostSteps = 1000
	// scanShare is the part of an inspection's time that looking at keys may take.
	scanShare = 0.8
)

// Inspect looks at how the servers of a store are set up, and at whose slots they hold,
// until ctx ends, and leaves nothing there. pools are those that the configuration has;
// without any it looks at no keys. It makes connections of its own. The error says why the store could not be looked at.
func Inspect(ctx context.Context, o Options, pools []string) (store.Inspection, error) {
	o, err := o.withDefaults()
	if err != nil {
		return store.Inspection{}, err
	}
	client, err := o.bareClient(ctx)
	if err != nil {
		return store.Inspection{}, err
	}
	defer client.Close()
	i := &inspection{keys: luascripts.Keys{Prefix: o.Prefix}, pools: pools}
	i.found = store.Inspection{Mode: string(o.Mode), Schema: luascripts.Schema, Elsewhere: map[string][]string{}}
	if deadline, ok := ctx.Deadline(); ok {
		i.until = time.Now().Add(time.Duration(scanShare * float64(time.Until(deadline))))
	}
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, i.look)
	} else {
		err = i.look(ctx, client.(*redis.Client))
	}
	if err == nil {
		err = i.started(ctx, client)
	}
	return i.result(), err
}

// bareClient is one that tells the servers nothing of this gate.
func (o Options) bareClient(ctx context.Context) (redis.UniversalClient, error) {
	switch o.Mode {
	case Cluster:
		return redis.NewClusterClient(o.cluster(1)), nil
	case Sentinel:
		named := newSentinels(o)
		defer named.close()
		master, err := named.find(ctx)
		if err != nil {
			return nil, err
		}
		o.Addresses = []string{master}
	}
	return redis.NewClient(o.direct(1)), nil
}

// inspection gathers what is found, from several servers at once.
type inspection struct {
	keys  luascripts.Keys
	pools []string
	until time.Time // for looking at keys; zero: no end

	mu    sync.Mutex
	found store.Inspection
}

// look looks at one server.
func (i *inspection) look(ctx context.Context, client *redis.Client) error {
	info, err := client.Info(ctx).Result()
	if err != nil {
		return err
	}
	server := readInfo(info)
	server.Address = client.Options().Addr
	if err := readSettings(ctx, client, infoField(info, "cluster_enabled") == "1", &server); err != nil {
		return err
	}
	indexes, partly, err := i.scan(ctx, client)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.found.Servers = append(i.found.Servers, server)
	i.found.Partly = i.found.Partly || partly
	for _, index := range indexes {
		switch prefix, pool := index[1], index[2]; {
		case prefix == i.keys.Prefix && !slices.Contains(i.pools, pool):
			i.found.Others = append(i.found.Others, pool)
		case prefix != i.keys.Prefix && slices.Contains(i.pools, pool):
			i.found.Elsewhere[pool] = append(i.found.Elsewhere[pool], prefix)
		}
	}
	return nil
}

// readInfo reads the reply of INFO.
func readInfo(info string) store.Server {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(infoField(info, name), 10, 64) // 0 where it is not told
		return n
	}
	s := store.Server{
		Version: "redis " + infoField(info, "redis_version"), Role: infoField(info, "role"),
		Replicas: int(number("connected_slaves")), MaxMemory: number("maxmemory"),
		Eviction: infoField(info, "maxmemory_policy"), Persistence: "none",
	}
	if version := infoField(info, "valkey_version"); version != "" {
		s.Version = "valkey " + version
	}
	if infoField(info, "min_slaves_good_slaves") != "" { // told only where it is on
		s.MinReplicas = 1
	}
	if number("aof_enabled") == 1 {
		s.Persistence = "aof"
	}
	return s
}

// readSettings adds what only the configuration tells, if the server shows it: many
// that are run by others do not, nor need it be among a user's rights.
func readSettings(ctx context.Context, client *redis.Client, clustered bool, s *store.Server) error {
	patterns := []string{"min-replicas-*", "save"}
	if clustered {
		patterns = append(patterns, "cluster-node-timeout")
	}
	for _, pattern := range patterns {
		settings, err := client.ConfigGet(ctx, pattern).Result()
		if isReply(err) {
			s.Hidden = true
			return nil
		}
		if err != nil {
			return err
		}
		number := func(name string) int {
			n, _ := strconv.Atoi(settings[name])
			return n
		}
		switch pattern {
		case "min-replicas-*":
			s.MinReplicasLag = time.Duration(number("min-replicas-max-lag")) * time.Second
			if s.MinReplicas > 0 {
				s.MinReplicas = number("min-replicas-to-write")
			}
		case "save":
			if s.Persistence == "none" && settings["save"] != "" {
				s.Persistence = "rdb"
			}
		case "cluster-node-timeout":
			s.CutOff = time.Duration(number("cluster-node-timeout")) * time.Millisecond
		}
	}
	return nil
}

// indexKey is the index of a pool's slots, under any prefix.
var indexKey = regexp.MustCompile(`^(.+):i:\{([^{}]+)\}$`)

// scan finds the indexes of pools among the keys of a server: prefix and pool each.
func (i *inspection) scan(ctx context.Context, client *redis.Client) (indexes [][]string, partly bool, err error) {
	if len(i.pools) == 0 {
		return nil, false, nil
	}
	cursor := uint64(0)
	for range mostSteps {
		if !i.until.IsZero() && time.Now().After(i.until) {
			return indexes, true, nil
		}
		var keys []string
		keys, cursor, err = client.Scan(ctx, cursor, "*:i:{*}", scanStep).Result()
		if isReply(err) { // not among the user's rights
			return indexes, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		for _, key := range keys {
			if index := indexKey.FindStringSubmatch(key); index != nil {
				indexes = append(indexes, index)
			}
		}
		if cursor == 0 {
			return indexes, false, nil
		}
	}
	return indexes, true, nil
}

// started finds out which pools have slots, however many keys there are.
func (i *inspection) started(ctx context.Context, client redis.UniversalClient) error {
	for _, pool := range i.pools {
		first, err := client.ZRangeByScore(ctx, i.keys.Index(pool), &redis.ZRangeBy{Min: "-inf", Max: "+inf", Count: 1}).Result()
		if err != nil {
			return err
		}
		if len(first) > 0 {
			i.found.Started = append(i.found.Started, pool)
		}
	}
	return nil
}

// result puts what was found in order. SCAN may show a key twice.
func (i *inspection) result() store.Inspection {
	sorted := func(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }
	found := i.found
	found.Others = sorted(found.Others)
	for pool, prefixes := range found.Elsewhere {
		found.Elsewhere[pool] = sorted(prefixes)
	}
	slices.SortFunc(found.Servers, func(a, b store.Server) int { return strings.Compare(a.Address, b.Address) })
	return found
}
