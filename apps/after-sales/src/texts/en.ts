import type { Texts } from "./index.ts";

/** English texts, key by key the twin of `zh.ts`. */
export const en: Texts = {
  lang: "en",
  status: { delivered: "delivered", in_delivery: "in delivery" },
  product: {
    "ORD-001": "wireless earphones",
    "ORD-002": "mechanical keyboard",
    "ORD-003": "4K monitor",
    "ORD-004": "mouse pad",
  },

  order: {
    instructions:
      "After-sales orders: look up an order, refund one (needs an approval; from 500.00 CNY the user confirms again), refund a batch (at most 500.00 CNY each).",
    queryTool: "Looks up an order's product, status and amount by its number.",
    refundTool: "Refunds one delivered order. From 500.00 CNY on, the user is asked to confirm again.",
    batchTool: "Refunds several delivered orders of at most 500.00 CNY each and reports progress.",
    orderId: "order number, e.g. ORD-001",
    orderIds: "list of order numbers, or a comma-separated string",
    reason: "reason of the refund",
    callerId: "who calls; filled in by the system",
    resource: "Order detail",
    summary: (id, product, status, amount) => `Order ${id}: ${product}, ${status}, ${amount} CNY`,
    refundedAlready: (amount, at) => `, refunded ${amount} CNY on ${at}`,
    unknown: (id) => `Order ${id} does not exist; check the order number`,
    notDelivered: (id, status) => `Order ${id} is ${status}; only delivered orders can be refunded`,
    already: (id, amount) => `Order ${id} has already been refunded (${amount} CNY) and cannot be refunded again`,
    tooLarge: (id, amount) => `Order ${id} is ${amount} CNY, above the batch limit of 500.00 CNY; refund it on its own`,
    confirm: (id, product, amount) => `Large refund: refund ${amount} CNY for order ${id} (${product})?`,
    confirmChoice: "Confirm the refund",
    cancelChoice: "Do not refund",
    confirmed: (id, amount) => `The user confirmed the large refund: order ${id}, ${amount} CNY`,
    choseCancel: (id) => `The user chose not to refund; order ${id} is unchanged`,
    declined: (id) => `The user declined to confirm; order ${id} is unchanged`,
    dismissed: (id) => `The user closed the confirmation without an answer; order ${id} is unchanged`,
    refunded: (id, product, amount) => `Refund successful: order ${id} (${product}), ${amount} CNY`,
    batchStarted: (n) => `Batch refund started with ${n} orders`,
    batchDone: (id, amount) => `${id} refunded, ${amount} CNY`,
    batchSkipped: (id, reason) => `${id} skipped: ${reason}`,
    batchFinished: (done, total) => `Batch refund finished: ${done}/${total} successful`,
    batchSize: (max) => `at least one order and at most ${max} at a time`,
  },

  notification: {
    instructions: "Notifications: send text messages; holds the return policy and the template of a refund reply.",
    smsTool: "Sends a text message to the user's phone. Check the number with validate_phone first.",
    phone: "phone number: 11 digits, starts with 1",
    content: "text of the message, 1 to 500 characters",
    policyTitle: "Return policy",
    promptTitle: "Reply after a successful refund",
    promptOrderId: "order number",
    promptAmount: "refunded amount in CNY",
    badPhone: (phone) => `Phone number ${phone} is not valid: 11 digits starting with 1 are expected`,
    sent: (phone) => `Message sent to ${phone}`,
    failed: (id) =>
      `The message gateway did not take the message; it is kept in the outbox (number ${id}), try again later`,
    policy: `# Return policy

1. Without a reason: within 7 days of delivery, if the goods can be resold.
2. Defects: exchange within 30 days of delivery; the shop pays shipping both ways.
3. Gifts: gifts go back together with the goods.
4. Money: returned the way it was paid within 3 working days after the goods arrive.
`,
    reply: (orderId, amount) =>
      `Hello, the refund of order ${orderId} has been accepted. ${amount} CNY will be returned the way you paid within 3 working days. We are sorry for the trouble.`,
  },

  access: {
    otherCaller: (value, subject) =>
      `The caller ${value} does not fit the token: it is of ${subject}, and calls are made as that user only`,
    expired: (server, at) => `The ${server} did not accept your token: it expired at ${at}. Please use a new one.`,
    issuedElsewhere: (server, issuer, audience) =>
      `The ${server} did not accept your token: ${issuer} issued it, for ${audience}. Please use one that an issuer the ${server} trusts has issued for it.`,
    refused: (server) => `The ${server} did not accept your token. Please use one that was issued for it.`,
    needed: (server, variable) =>
      `The ${server} needs a token: please give one in the environment variable ${variable}.`,
    unreadable: (server) => `The token for the ${server} cannot be read; please check the given token or its file.`,
    lacking: (server, scopes) =>
      `Your token lacks a scope that the ${server} asks for${scopes && ` (${scopes})`}; this step was not carried out.`,
    hidden: (server, scopes, tools) =>
      `Your token lacks the scope ${scopes} for the ${server}, so these cannot be used: ${tools.join(", ")}.`,
  },

  agent: {
    system: `You are the after-sales assistant of a shop. Use the tools to look up and handle orders; never make up results.
- Permanent errors such as an unknown order: tell the user as it is, do not retry.
- One order: process_refund. Several orders: batch_refund.
- After a successful refund, reply by the "Refund reply template" and offer a text message.
- Before a text message, check the number with validate_phone, then use send_sms.
- Answer questions about returns from the "Return policy" only.`,
    policyHeading: "Return policy",
    templateHeading: "Refund reply template",
    unavailableHeading: "Unavailable now (tell the user why, do not try)",
    phoneTool: "Checks a phone number: 11 digits, starting with 1.",
    phoneValid: (phone) => `Phone number ${phone} is valid`,
    phoneInvalid: (phone) => `Phone number ${phone} is not valid: 11 digits starting with 1 are expected`,
    approvalDescription: (id) => `A refund of order ${id} needs a person's approval`,
  },

  offline: {
    honest:
      "I am the offline stand-in, not a real language model; set a model to talk freely (for example --model deepseek:deepseek-chat). What I can do:\n" +
      '- look up an order, e.g. "Look up order ORD-001"\n- refund, e.g. "ORD-003 the screen is broken, please refund"\n- refund a batch, e.g. "Refund ORD-002 and ORD-004, quality problem"\n' +
      '- send a text message, e.g. "Text 18812345678, content: refunded"\n- answer from the return policy\n- call a tool directly: /tool name {arguments}',
    defaultReason: "requested by the user",
    unclearBatch: (ids) =>
      `A batch is refunded without a further approval, so I act on plain words only; nothing was refunded. Say "Please refund ${ids}" to refund them, or "look up ${ids}" to look them up.`,
    needOrder: "Which order? Please give me its number, e.g. ORD-001.",
    needPhone: "Which phone number should get the message (11 digits, starting with 1)?",
    needContent: 'What should the message say? For example "content: ORD-001 is refunded".',
    offerSms: "Would you like a text message about it? Send me the phone number and the content.",
    notRefunded: (text) => `The refund was not made: ${text}.`,
    rejected: (reason) => `The refund was not approved: ${reason}.`,
    nothingRefunded: "All right, nothing is refunded; no order was changed.",
    batch: (done, total, amount) =>
      `Batch refund finished: ${done} of ${total} orders successful, ${amount} CNY in total.`,
    batchSkipped: (list) => `Not refunded: ${list}.`,
    smsSent: (phone, content) => `The phone number is valid; the message was sent to ${phone}: "${content}".`,
    smsWithheld: "The refund was not made, so no message was sent.",
    failed: (text) => `That did not work: ${text}.`,
    unavailable: (server) => `The ${server} cannot be reached right now; please try again later.`,
    serverNames: { order: "order service", notification: "notification service" },
    smsDefault: (orderId, amount) =>
      `Your order ${orderId} has been refunded: ${amount} CNY, back within 3 working days.`,
    noPolicy: "The return policy cannot be read right now (notification service unavailable); please ask again later.",
  },

  chat: {
    welcome: (model, thread) => `After-sales desk  model: ${model}  thread: ${thread}  (/help shows how, quit leaves)`,
    offlineNotice: "Note: the offline stand-in is in use, not a real model.",
    help: "Type what you need. Commands: /tools  /prompts  /name key=value uses a prompt  @resource-uri attaches a resource  /audit  /status  /tool name {json} calls a tool  quit, exit, q leave",
    prompt: "you> ",
    assistant: "assistant: ",
    empty: "Please type something.",
    tooLong: (bytes, limit) => `This message has ${bytes} bytes, more than the limit of ${limit}; it was not sent.`,
    bye: "Goodbye. The thread is saved and goes on at the next start.",
    paused: "This question stays open; it can be answered at the next start.",
    pending: "A question from last time is still open:",
    resumed: "The last run was cut; it goes on now.",
    questionCut: "The next question is too long to be shown in full; approve only what you can see.",
    superseded: "This question was answered elsewhere; your answer was not used.",
    threadBusy: (thread) => `Thread ${thread} is busy in another window; try again in a moment.`,
    tool: (name) => `calling ${name}`,
    toolFailed: "failed",
    formActions: "decline  do not answer   cancel  close the question",
    progress: "progress",
    level: {
      debug: "debug",
      info: "info",
      notice: "notice",
      warning: "warning",
      error: "error",
      critical: "critical",
      alert: "alert",
      emergency: "emergency",
    },
    audit: "audit",
    noAudit: "no remote tool was called in this turn",
    note: (text) => `Note: ${text}`,
    serverDown: (server, reason) =>
      `Note: the ${server} cannot be reached (${reason}). What needs it is unavailable; it goes on by itself when the server is back.`,
    serverUp: (server) => `The ${server} is back.`,
    serverExited: (server) => `The ${server} exited unexpectedly and is being restarted…`,
    portTaken: (server, port, url) => `Port ${port} is in use; the ${server} listens on ${url} instead`,
    serving: (url) => `Serving: ${url}`,
    stopHint: "Ctrl-C stops. There is no terminal, so no chat is opened; use npm run chat to talk.",
    stopped: "Stopped.",
    diskFull: "The disk is full, so this turn could not be saved. Make room on it, then go on.",
    waits: (server) =>
      `The ${server} cannot be reached right now: your request is kept and waits, and goes on with your next message once the ${server} is back.`,
    stillWaits: "Your request is kept and waits; it goes on with your next message once that is put right.",
    notTaken:
      "What you have just written was not sent, since the waiting request goes first; please say it again then.",
    turnFailed: (reason) => `This turn did not finish: ${reason}. You can try again.`,
    unknownCommand: (name) => `There is no command or prompt /${name}; /help shows how.`,
    promptUsage: (name, args) => `Usage: /${name} ${args}`,
    attached: (uri) => `Attached resource ${uri}`,
    noResource: (uri) => `There is no resource ${uri}; nothing was attached.`,
    none: "(none)",
  },
};
