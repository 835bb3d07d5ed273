import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { AUDIENCE, createSigner, ISSUER, type Issuer, openIssuer, type Signer, sign } from "../../test/tokens.ts";
import { type JwtOptions, jwt, type TokenVerifier } from "./index.ts";

let one: Signer;
let two: Signer;
let issuer: Issuer;
const set = (...keys: Signer[]): { body: string } => ({ body: JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }) });
const down = { status: 500, body: "{}" };

beforeAll(async () => {
  [one, two] = await Promise.all([createSigner("one"), createSigner("two")]);
});
beforeEach(async () => {
  issuer = await openIssuer(() => set(one));
  vi.useFakeTimers({ toFake: ["Date", "performance"] });
});
afterEach(async () => {
  vi.useRealTimers();
  await issuer.close();
});

const verifier = (more: Partial<JwtOptions> = {}): TokenVerifier =>
  jwt({ issuer: ISSUER, audience: AUDIENCE, jwksUrl: `${issuer.url}/jwks`, ...more });
const logged: string[] = [];
const outcome = async (of: TokenVerifier, by: Signer): Promise<string> => {
  const token = await sign(by, "u", "", { expiresIn: 1_000_000 });
  return of
    .verify(token, (_, message) => void logged.push(message))
    .then(
      () => "accepted",
      (error) => error.data?.reason ?? error.code,
    );
};
const later = (seconds: number): void => void vi.advanceTimersByTime(seconds * 1_000);

describe("an issuer's published keys", () => {
  it("are read once for everybody who waits, and not again while they are fresh", async () => {
    const auth = verifier();
    expect(await Promise.all(Array.from({ length: 10 }, () => outcome(auth, one)))).toEqual(Array(10).fill("accepted"));
    later(500);
    expect(await outcome(auth, one)).toBe("accepted");
    expect(issuer.asked).toHaveLength(1);
    later(200);
    expect(await outcome(auth, one)).toBe("accepted");
    expect(issuer.asked).toHaveLength(2);
  });
  it("may change: a new key is read when a token names it, an old one stops when it is gone", async () => {
    const auth = verifier();
    expect(await outcome(auth, one)).toBe("accepted");
    issuer.answer = () => set(one, two);
    later(31);
    expect(await Promise.all([outcome(auth, two), outcome(auth, two)])).toEqual(["accepted", "accepted"]);
    expect(issuer.asked).toHaveLength(2);
    issuer.answer = () => set(two);
    later(601);
    expect(await outcome(auth, one)).toBe("unknown_key");
  });
  it("are not read again for every key that strangers name", async () => {
    const auth = verifier();
    expect(await outcome(auth, one)).toBe("accepted");
    for (let i = 0; i < 5; i++) expect(await outcome(auth, { ...two, kid: `k${i}` })).toBe("unknown_key");
    expect(issuer.asked).toHaveLength(1);
    later(31);
    for (let i = 0; i < 5; i++) expect(await outcome(auth, { ...two, kid: `k${i}` })).toBe("unknown_key");
    expect(issuer.asked).toHaveLength(2);
  });
  it("serve on while the issuer is away, for a limited time, and the log says so", async () => {
    const auth = verifier({ keysStaleMs: 3_600_000 });
    expect(await outcome(auth, one)).toBe("accepted");
    issuer.answer = () => down;
    logged.length = 0;
    later(601);
    expect(await outcome(auth, one)).toBe("accepted");
    expect(logged).toEqual([expect.stringMatching(/could not be read again; the last ones serve on/)]);
    expect(await outcome(auth, one)).toBe("accepted");
    expect(issuer.asked).toHaveLength(2); // it is not asked again at once
    later(3_100);
    expect(await outcome(auth, one)).toBe("auth_unavailable");
    issuer.answer = () => set(one);
    later(6);
    expect(await outcome(auth, one)).toBe("accepted");
  });
  it("leave open whether a token is good when they cannot be read: neither yes nor no", async () => {
    issuer.answer = () => down;
    const auth = verifier();
    expect(await outcome(auth, one)).toBe("auth_unavailable");
    issuer.answer = () => set(one);
    later(6);
    expect(await outcome(auth, one)).toBe("accepted");
    issuer.answer = () => down;
    later(31);
    expect(await outcome(auth, two)).toBe("auth_unavailable"); // perhaps it is a new key
    expect(await outcome(auth, one)).toBe("accepted");
  });
  it("are nothing but a key set of a sensible size, fetched from where they are, in time", async () => {
    for (const answer of [
      { body: "<html>" },
      { body: "[]" },
      { body: '{"keys":[]}' },
      { body: '{"keys":[1]}' },
      { body: JSON.stringify({ keys: Array(101).fill(one.jwk) }) },
      { body: JSON.stringify({ keys: [{ ...one.jwk, more: "x".repeat(600_000) }] }) },
      { status: 404, body: "{}" },
    ]) {
      issuer.answer = () => answer;
      expect(await outcome(verifier(), one), answer.body.slice(0, 20)).toBe("auth_unavailable");
    }
  });
  it("may have several keys without names: each is tried", async () => {
    const nameless = ({ jwk: { kid: _, ...jwk } }: Signer): object => jwk;
    issuer.answer = () => ({ body: JSON.stringify({ keys: [nameless(one), nameless(two)] }) });
    const auth = verifier();
    const token = await sign(two, "u", "", { header: { kid: undefined } });
    expect((await auth.verify(token, () => undefined)).caller.subject).toBe("u");
  });
});
