// A Kafka broker for the tests: franz-go's fake cluster, in memory, on one loopback port.
//
// usage: kafka PORT PARTITIONS TOPIC…
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	if len(os.Args) < 4 {
		fail(fmt.Errorf("usage: kafka PORT PARTITIONS TOPIC…"))
	}
	port, err := strconv.Atoi(os.Args[1])
	fail(err)
	partitions, err := strconv.ParseInt(os.Args[2], 10, 32)
	fail(err)
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.Ports(port),
		kfake.SeedTopics(int32(partitions), os.Args[3:]...),
		kfake.AllowAutoTopicCreation(),
	)
	fail(err)
	defer cluster.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	<-stop
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
