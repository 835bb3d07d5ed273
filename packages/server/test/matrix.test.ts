import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { isRecord } from "@tenon/core";
import { afterEach, describe, expect, it } from "vitest";
import { effectsIn } from "./trip.ts";
import { createWorld, type Place, places, type Transport, type World } from "./worlds.ts";

const call = { name: "trip", arguments: { to: "Rome" } };
const accept = (content: object): object => ({ action: "accept", content });
const script: Record<string, object> = {
  "Go to Rome?": accept({ value: "yes" }),
  "Which meal?": { action: "decline" },
  "How long?": accept({ days: 3 }),
};
const expected = { seat: "reserve Rome", meal: "decline", paid: "pay 3" };
const once = ["reserve Rome", "pay 3"];

interface Leg {
  resultType?: string;
  requestState?: string;
  inputRequests?: Record<string, { params: { message: string } }>;
  content?: { text: string }[];
  _meta?: Record<string, unknown>;
}
const result = (leg: Leg): unknown => JSON.parse(leg.content?.[0]?.text ?? "null");

/** Where the processes keep their outcomes: Postgres is for machines that share no disk. */
const databaseUrl = process.env.TENON_TEST_DATABASE_URL;
const stores: [string, string | undefined][] = [
  ["SQLite", undefined],
  ...(databaseUrl ? [["Postgres", databaseUrl] satisfies [string, string]] : []),
];

let world: World;
const opened: Place[] = [];
const clients: Client[] = [];
afterEach(async () => {
  await Promise.allSettled(clients.splice(0).map((client) => client.close()));
  await Promise.allSettled(opened.splice(0).map((place) => place.kill()));
  await world.remove();
});
const enter = (database?: string): void => {
  world = createWorld(database);
};
async function start(transport: Transport): Promise<Place> {
  const place = await places[transport](world);
  opened.push(place);
  return place;
}
const arm = (name: string): void => writeFileSync(join(world.folder, `crash-${name}`), "");

describe.each(Object.keys(places) as Transport[])("one handler over %s", { timeout: 90_000 }, (transport) => {
  describe("on the modern era", () => {
    const connect = async (place: Place): Promise<Client> => {
      const client = await place.connect("modern");
      clients.push(client);
      return client;
    };
    const send = (client: Client, more: object = {}): Promise<Leg> =>
      client.callTool({ ...call, ...more }, { allowInputRequired: true } as never) as Promise<Leg>; // its type has no rounds

    const answers = (leg: Leg): object => ({
      requestState: leg.requestState,
      inputResponses: Object.fromEntries(
        Object.entries(leg.inputRequests ?? {}).map(([key, { params }]) => [key, script[params.message]]),
      ),
    });
    /** Runs the whole call; `next` gives the client of every following round. */
    async function run(first: Client, next: (client: Client, round: number) => Promise<Client>): Promise<Leg> {
      let client = first;
      let leg = await send(client);
      for (let round = 1; leg.resultType === "input_required"; round++) {
        const retry = answers(leg);
        client = await next(client, round);
        leg = await send(client, retry);
      }
      return leg;
    }

    it("in one process", async () => {
      enter();
      const client = await connect(await start(transport));
      expect(result(await run(client, async (same) => same))).toEqual(expected);
      expect(effectsIn(world.folder)).toEqual(once);
    });
    it("with the process restarted between the rounds", async () => {
      enter();
      let place = await start(transport);
      const last = await run(await connect(place), async () => {
        await place.kill();
        place = await start(transport);
        return connect(place);
      });
      expect(result(last)).toEqual(expected);
      expect(effectsIn(world.folder)).toEqual(once);
    });
    it.each(stores)("with another replica for every other round, outcomes in %s", async (_, database) => {
      enter(database);
      const [one, two] = await Promise.all([start(transport).then(connect), start(transport).then(connect)]);
      expect(result(await run(one, async (_, round) => (round % 2 === 1 ? two : one)))).toEqual(expected);
      expect(effectsIn(world.folder)).toEqual(once);
      expect(existsSync(join(world.folder, "outcomes.db"))).toBe(database === undefined);
    });
    it("with a crash inside a round, after its step", async () => {
      enter();
      const client = await connect(await start(transport));
      let leg = await send(client);
      for (let i = 0; i < 2; i++) leg = await send(client, answers(leg));
      arm("after-pay");
      await expect(send(client, answers(leg))).rejects.toThrow();
      expect(effectsIn(world.folder)).toEqual(once);
      const again = await connect(await start(transport));
      const finished = await send(again, answers(leg));
      expect(result(finished)).toEqual(expected);
      expect(effectsIn(world.folder)).toEqual(once);
      const repeated = await send(again, answers(leg));
      expect(result(repeated)).toEqual(expected);
      expect(repeated._meta?.["dev.tenon/replayed"]).toBe(true);
    });
  });

  describe("on the legacy era", () => {
    const connect = async (place: Place, answer: (message: string) => unknown): Promise<Client> => {
      const client = await place.connect("legacy", answer);
      clients.push(client);
      return client;
    };
    /** The call ended with an error that programs can tell: one of the client's, or a result marked so. */
    async function failure(calling: Promise<unknown>): Promise<string> {
      try {
        const answered = await calling;
        if (isRecord(answered) && answered.isError === true) return "isError";
        throw new Error(`no failure: ${JSON.stringify(answered)}`);
      } catch (error) {
        if (error instanceof Error && "code" in error) return String(error.code);
        throw error;
      }
    }

    it("in one process", async () => {
      enter();
      const client = await connect(await start(transport), (message) => script[message]);
      expect(result((await client.callTool(call)) as Leg)).toEqual(expected);
      expect(effectsIn(world.folder)).toEqual(once);
    });
    it("ends with a typed error and no effect after the question when the process ends", async () => {
      enter();
      const place = await start(transport);
      const client = await connect(place, async (message) => {
        if (message === "Which meal?") await place.kill();
        return script[message];
      });
      expect(await failure(client.callTool(call, { timeout: 2_000 }))).toMatch(/isError|CLOSED|TIMEOUT|FAILED/i);
      await start(transport);
      expect(effectsIn(world.folder)).toEqual(["reserve Rome"]);
    });
    const elsewhere = "ends with a typed error and no effect after the question when another replica gets the answer";
    it.each(stores)(`${elsewhere}, outcomes in %s`, async (_, database) => {
      enter(database);
      const [one, two] = [await start(transport), await start(transport)];
      if (one.fetch === undefined) {
        // a stdio client has one process: leaving it for another ends the connection
        const client = await connect(one, async (message) => {
          if (message === "Which meal?") await client.close();
          return script[message];
        });
        expect(await failure(client.callTool(call, { timeout: 2_000 }))).toMatch(/isError/);
      } else {
        const client = await connect(one, (message) => {
          if (message === "Which meal?") one.redirect(two);
          return script[message];
        });
        expect(await failure(client.callTool(call, { timeout: 1_500 }))).toMatch(/isError|TIMEOUT/i);
      }
      expect(effectsIn(world.folder)).toEqual(["reserve Rome"]);
    });
    it("ends with a typed error and no effect after the question when the process crashes in the round", async () => {
      enter();
      const client = await connect(await start(transport), (message) => script[message]);
      arm("before-pay");
      expect(await failure(client.callTool(call, { timeout: 2_000 }))).toMatch(/isError|CLOSED|TIMEOUT|FAILED/i);
      expect(effectsIn(world.folder)).toEqual(["reserve Rome"]);
    });
  });
});
