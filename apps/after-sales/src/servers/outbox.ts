import type Database from "better-sqlite3";

interface Message {
  id: number;
  phone: string;
  content: string;
}

/** Hands a message to the telephone network. Throws when it was not taken. */
export type SmsGateway = (message: Message) => Promise<void>;

/** Writes the message to `write`: the default, for trying things out. */
export function consoleGateway(write: (line: string) => void): SmsGateway {
  return async (message) => write(`SMS #${message.id} → ${message.phone}: ${message.content}`);
}

/** Posts the message as JSON; anything but a 2xx answer within 5 s means it was not taken. */
export function webhookGateway(url: string): SmsGateway {
  return async (message) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": `sms-${message.id}` },
      body: JSON.stringify(message),
      signal: AbortSignal.timeout(5_000),
      redirect: "error",
    });
    if (!response.ok) throw new Error(`the gateway answered ${response.status}`);
  };
}

export interface Outbox {
  /**
   * Stores the message, then hands it to the gateway; the same key is stored and, once taken, delivered only once.
   * @returns the stored message, and whether the gateway took it
   */
  send(
    message: Omit<Message, "id">,
    about: { callerId: string; idempotencyKey: string },
  ): Promise<{ message: Message; sent: boolean }>;
}

export function createOutbox(database: Database.Database, gateway: SmsGateway): Outbox {
  const insert = database.prepare<[string, string, string, string, string]>(
    `insert into sms_outbox (phone, content, caller_id, idempotency_key, status, created_at)
     values (?, ?, ?, ?, 'queued', ?) on conflict (idempotency_key) do nothing`,
  );
  const select = database.prepare<[string], Message & { status: string }>(
    "select id, phone, content, status from sms_outbox where idempotency_key = ?",
  );
  const mark = database.prepare<[string, number]>("update sms_outbox set status = ? where id = ?");
  return {
    async send({ phone, content }, { callerId, idempotencyKey }) {
      insert.run(phone, content, callerId, idempotencyKey, new Date().toISOString());
      const stored = select.get(idempotencyKey);
      if (!stored) throw new Error("the outbox row vanished");
      const { status, ...message } = stored;
      if (status === "sent") return { message, sent: true };
      try {
        await gateway(message);
        mark.run("sent", message.id);
        return { message, sent: true };
      } catch {
        mark.run("failed", message.id);
        return { message, sent: false };
      }
    },
  };
}
