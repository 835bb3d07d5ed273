import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newContractKey, publicContractKey, writeContractKeys } from "@tenon/core/contract";
import { check } from "../lib/check.ts";
import { say } from "../lib/locale.ts";
import { openDesk } from "./desk.ts";
import { start } from "./processes.ts";

const folder = mkdtempSync(join(tmpdir(), "approval-and-knowledge-"));
const kbKey = newContractKey({ kid: "kb-2026-11", alg: "EdDSA" });
const apKey = newContractKey({ kid: "ap-2026-11", alg: "EdDSA" });
const kb = await start("knowledge.ts", writeContractKeys([kbKey]), folder, "kb-1", "1.0.0");
const ap = await start("approvals.ts", writeContractKeys([apKey]), folder, "0");
const servers = {
  kb: { url: kb.url, contract: { keys: writeContractKeys([publicContractKey(kbKey)]) } },
  approval: { url: ap.url, contract: { keys: writeContractKeys([publicContractKey(apKey)]) } },
};
const desk = await openDesk({ folder, servers });
console.log(await desk.ask("s1", { user_id: "lin", question: "退款多久到账？" }));
console.log(await desk.ask("s2", { user_id: "lin", question: "退货", amount: 700 }));
console.log(await desk.waiting("s2"));
console.log(await desk.answer("s2", "approve"));
console.log(await desk.ask("s3", { question: "退货", amount: 700 }).catch((e) => e));
console.log(readFileSync(join(folder, "seen"), "utf8"));
await desk.close();
await kb.stop();
await ap.stop();
rmSync(folder, { recursive: true });
