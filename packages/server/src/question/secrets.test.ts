import { describe, expect, it } from "vitest";
import { z } from "zod";
import { compileShape, multi } from "./question.ts";
import { isSecretName } from "./secrets.ts";

describe("field names", () => {
  it.each(
    "password userPassword PASSWD passphrase client_secret secret token accessToken refresh-token api_key apiKey APIKey apikey cardNumber card_number creditCardNumber cvv cvc cardCVV pin cardPin user_pin security_code otp privateKey credentials".split(
      " ",
    ),
  )("%s asks for a secret", (name) => expect(isSecretName(name)).toBe(true));
  it.each(
    "tokens tokens_used token_count maxTokens tokenize pinned pin_color shipping spinning secretary keyboard api monkey accessKeyboard number cardholder passenger card_type passport".split(
      " ",
    ),
  )("%s does not", (name) => expect(isSecretName(name)).toBe(false));
});

describe("forms for secrets", () => {
  it("are refused, naming the field and the way out", () => {
    expect(() => compileShape(z.object({ user: z.string(), apiKey: z.string() }))).toThrow(
      'the field "apiKey" asks for a secret',
    );
    expect(() => compileShape(z.object({ pin: z.number() }))).toThrow("ctx.elicitUrl(message, url)");
    expect(() => compileShape(z.object({ word: z.string().meta({ format: "password" }) }))).toThrow('the field "word"');
    expect(() => compileShape(z.string().meta({ title: "Your password" }))).toThrow("asks for a secret");
  });
  it("are not refused for choices, since they tell nothing that was not known", () => {
    const shape = z.object({ rotateToken: z.boolean(), token: z.enum(["old", "new"]), tokens_used: z.number() });
    expect(compileShape(shape).schema.required).toHaveLength(3);
    expect(compileShape(multi(["password", "passkey"])).schema.type).toBe("object");
  });
});
