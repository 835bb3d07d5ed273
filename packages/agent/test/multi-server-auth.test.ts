import { bearer } from "@tenon/client/auth";
import { createServer } from "@tenon/server";
import { jwt } from "@tenon/server/auth";
import { createSigningKey, publicJwks, signToken } from "@tenon/server/development";
import { expect, it } from "vitest";
import { MultiServerMCPClient } from "../src/index.ts";
import { cleanUpAfterEach, later } from "./multi-servers.ts";

cleanUpAfterEach();

it("signs in to its servers with an auth of @tenon/client/auth, and says so where it does not", async () => {
  const key = await createSigningKey();
  const issuer = "https://login.example";
  const audience = "urn:example:diary";
  const server = createServer({
    name: "diary",
    version: "1.0.0",
    logSink: () => {},
    auth: jwt({ issuer, audience, publicKey: publicJwks(key) }),
  });
  server.tool("who", {}, (_, ctx) => `you are ${ctx.caller?.subject}`);
  later(() => server.close());
  const { url } = await server.listen({ port: 0 });
  const token = await signToken({ key, issuer, audience, subject: "ann" });

  const client = new MultiServerMCPClient({ diary: { url, auth: bearer(token) } });
  later(() => client.close());
  const [who] = await client.getTools();
  expect(await who?.invoke({})).toBe("you are ann");

  const stranger = new MultiServerMCPClient({ diary: { url } });
  later(() => stranger.close());
  await expect(stranger.getTools()).rejects.toMatchObject({ code: "unauthorized" });
});
