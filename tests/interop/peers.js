// npm's bloom-filters as a program: write LIST N P FILE, or check FILE LIST.
const fs = require('fs')
const { createRequire } = require('module')
const { BloomFilter } = createRequire(process.env.PEERS + '/')('bloom-filters')

const lines = (path) => fs.readFileSync(path, 'utf8').trimEnd().split('\n')
const [verb, ...args] = process.argv.slice(2)
if (verb === 'check') {
  const filter = BloomFilter.fromJSON(JSON.parse(fs.readFileSync(args[0], 'utf8')))
  for (const line of lines(args[1])) {
    if (filter.has(line)) console.log(line)
  }
} else {
  const filter = BloomFilter.create(Number(args[1]), Number(args[2]))
  for (const line of lines(args[0])) filter.add(line)
  fs.writeFileSync(args[3], JSON.stringify(filter.saveAsJSON()))
}
