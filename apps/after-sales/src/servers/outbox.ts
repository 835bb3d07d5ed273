import type { Kysely } from "kysely";
import type { DeskDatabase, DeskTables } from "../database/tables.ts";

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

/** @param place.lockRows a second process that has the same key waits until the first one knows whether it was taken */
export function createOutbox({ db, lockRows }: Pick<DeskDatabase, "db" | "lockRows">, gateway: SmsGateway): Outbox {
  async function deliver(queries: Kysely<DeskTables>, idempotencyKey: string): ReturnType<Outbox["send"]> {
    const stored = queries
      .selectFrom("sms_outbox")
      .select(["id", "phone", "content", "status"])
      .where("idempotency_key", "=", idempotencyKey);
    const { status, ...message } = await (lockRows ? stored.forUpdate() : stored).executeTakeFirstOrThrow();
    if (status === "sent") return { message, sent: true };
    const sent = await gateway(message).then(
      () => true,
      () => false,
    );
    await queries
      .updateTable("sms_outbox")
      .set({ status: sent ? "sent" : "failed" })
      .where("id", "=", message.id)
      .execute();
    return { message, sent };
  }
  return {
    async send({ phone, content }, { callerId, idempotencyKey }) {
      const about = { caller_id: callerId, idempotency_key: idempotencyKey, created_at: new Date().toISOString() };
      await db
        .insertInto("sms_outbox")
        .values({ phone, content, ...about, status: "queued" })
        .onConflict((conflict) => conflict.column("idempotency_key").doNothing())
        .execute();
      if (!lockRows) return deliver(db, idempotencyKey);
      return db.transaction().execute((transaction) => deliver(transaction, idempotencyKey));
    },
  };
}
