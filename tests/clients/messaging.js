// Messages and events through the official clients for JavaScript; prints what they saw, by section, as JSON.
"use strict";

const { ServiceBusClient } = require("@azure/service-bus");
const { EventHubProducerClient, EventHubConsumerClient, earliestEventPosition } = require("@azure/event-hubs");

const [connectionString, queue, sessions, hub] = process.argv.slice(2);
const WAIT = { maxWaitTimeInMs: 60000 };

async function one(receiver) {
  const [message] = await receiver.receiveMessages(1, WAIT);
  return message;
}

async function plain(client) {
  const sender = client.createSender(queue);
  const batch = await sender.createMessageBatch();
  for (const body of ["complete", "abandon", "dead-letter"]) {
    batch.tryAddMessage({ body, messageId: body, applicationProperties: { size: body.length } });
  }
  await sender.sendMessages(batch);
  const receiver = client.createReceiver(queue);
  const seen = {};
  const first = await one(receiver);
  seen.first = [first.body, first.applicationProperties.size, first.deliveryCount];
  await receiver.renewMessageLock(first);
  await receiver.completeMessage(first);
  await receiver.abandonMessage(await one(receiver));
  const again = await one(receiver);
  seen.again = [again.body, again.deliveryCount];
  await receiver.completeMessage(again);
  await receiver.deadLetterMessage(await one(receiver), { deadLetterReason: "why", deadLetterErrorDescription: "so" });
  const dead = await one(client.createReceiver(queue, { subQueueType: "deadLetter", receiveMode: "receiveAndDelete" }));
  seen.dead = [dead.body, dead.deadLetterReason, dead.deadLetterErrorDescription];
  const [number] = await sender.scheduleMessages({ body: "later" }, new Date(Date.now() + 3600000));
  seen.scheduled = (await receiver.peekMessages(10)).map((message) => [message.body, message.state]);
  await sender.cancelScheduledMessages(number);
  await sender.sendMessages({ body: { nested: ["deferred"] } });
  const deferred = await one(receiver);
  await receiver.deferMessage(deferred);
  const [back] = await receiver.receiveDeferredMessages(deferred.sequenceNumber);
  seen.deferred = back.body;
  await receiver.completeMessage(back);
  seen.left = (await receiver.peekMessages(10)).length;
  return seen;
}

async function inSessions(client) {
  const sender = client.createSender(sessions);
  await sender.sendMessages([1, 2, 3].map((body) => ({ body, sessionId: "s" })));
  const receiver = await client.acceptNextSession(sessions);
  await receiver.setSessionState("state of s");
  const bodies = [];
  while (bodies.length < 3) {
    for (const message of await receiver.receiveMessages(3, WAIT)) {
      bodies.push(message.body);
      await receiver.completeMessage(message);
    }
  }
  const seen = { session: receiver.sessionId, bodies, state: await receiver.getSessionState() };
  let refused = null;
  try {
    await client.acceptSession(sessions, "s");
  } catch (error) {
    refused = error.code;
  }
  await receiver.close();
  return { ...seen, refused };
}

async function events() {
  const producer = new EventHubProducerClient(connectionString, hub);
  const batch = await producer.createBatch({ partitionId: "1" });
  for (let number = 0; number < 10; number++) {
    batch.tryAdd({ body: { number } });
  }
  await producer.sendBatch(batch);
  await producer.sendBatch([{ body: "keyed" }], { partitionKey: "abc-123" });
  const partitions = await producer.getPartitionIds();
  await producer.close();
  const consumer = new EventHubConsumerClient("$Default", connectionString, hub);
  const received = { 0: [], 1: [] };
  await new Promise((resolve, reject) => {
    const subscription = consumer.subscribe(
      {
        processEvents: async (some, context) => {
          received[context.partitionId].push(...some.map((event) => [event.body, event.partitionKey ?? null]));
          if (received[0].length + received[1].length >= 11) {
            subscription.close().then(resolve, reject);
          }
        },
        processError: async (error) => reject(error),
      },
      { startPosition: earliestEventPosition },
    );
  });
  await consumer.close();
  return { partitions, received };
}

async function main() {
  const client = new ServiceBusClient(connectionString);
  const seen = { plain: await plain(client), sessions: await inSessions(client), events: await events() };
  await client.close();
  console.log(JSON.stringify(seen));
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
