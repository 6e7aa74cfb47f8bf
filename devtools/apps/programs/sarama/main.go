// sarama: admin calls, an idempotent synchronous producer, a consumer group.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
)

const topic, count = "sarama", 30

type handler struct {
	seen map[string]bool
	done context.CancelFunc
}

func (handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (h handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			h.seen[string(message.Value)] = true
			session.MarkMessage(message, "")
			if len(h.seen) == count {
				h.done()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	brokers := []string{os.Getenv("BOOTSTRAP")}
	config := sarama.NewConfig()
	config.Version = sarama.V3_6_0_0
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Return.Successes = true
	config.Net.MaxOpenRequests = 1
	config.Consumer.Offsets.Initial = sarama.OffsetOldest

	admin, err := sarama.NewClusterAdmin(brokers, config)
	check(err)
	check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false))

	producer, err := sarama.NewSyncProducer(brokers, config)
	check(err)
	for number := 0; number < count; number++ {
		value := sarama.StringEncoder(fmt.Sprint(number))
		_, offset, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: value})
		check(err)
		if offset != int64(number) {
			check(fmt.Errorf("record %d has offset %d", number, offset))
		}
	}
	check(producer.Close())

	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	group, err := sarama.NewConsumerGroup(brokers, "sarama", config)
	check(err)
	seen := handler{map[string]bool{}, cancel}
	for ctx.Err() == nil {
		check(group.Consume(ctx, []string{topic}, seen))
	}
	check(group.Close())
	if len(seen.seen) != count {
		check(fmt.Errorf("%d of %d records were read", len(seen.seen), count))
	}
	check(admin.DeleteTopic(topic))
	check(admin.Close())
}
