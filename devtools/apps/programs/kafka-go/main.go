// kafka-go: a writer with compression, a reader in a group that commits, a second reader that goes on from there.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
)

const topic, count = "kafka-go", 40

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func read(ctx context.Context, wanted int) map[string]bool {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{os.Getenv("BOOTSTRAP")}, GroupID: "kafka-go", Topic: topic, StartOffset: kafka.FirstOffset,
	})
	seen := map[string]bool{}
	for len(seen) < wanted {
		message, err := reader.ReadMessage(ctx)
		check(err)
		seen[string(message.Value)] = true
	}
	check(reader.Close())
	return seen
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	writer := &kafka.Writer{
		Addr: kafka.TCP(os.Getenv("BOOTSTRAP")), Topic: topic, RequiredAcks: kafka.RequireAll,
		Compression: kafka.Zstd, AllowAutoTopicCreation: true, BatchTimeout: 10 * time.Millisecond,
	}
	for number := 0; number < count; number++ {
		message := kafka.Message{Value: []byte(fmt.Sprint(number))}
		for try := 0; ; try++ {
			err := writer.WriteMessages(ctx, message)
			if err == nil {
				break
			}
			if try == 20 { // the topic is being made
				check(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	check(writer.Close())
	first := read(ctx, count/2)
	for value := range read(ctx, count-len(first)) {
		if first[value] {
			check(fmt.Errorf("record %s was read twice", value))
		}
	}
}
