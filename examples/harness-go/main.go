// A harness with a person in it: calls go to `ringfence run`, its questions come here and never to the agent.
//
// `go run main.go` works in the current folder and asks at its own stdin: y, a (for the session), or no.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"strings"
	"sync"
)

const policy = "version: 1\nrules: {read: allow, write: allow, delete: ask}\n"

type call struct {
	ID        int            `json:"id"`
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

type result struct {
	ID      int    `json:"id"`
	Status  string `json:"status"`
	Content string `json:"content"`
}

// message is a line of the approvals channel; a field that is not used here is passed over.
type message struct {
	Event       string  `json:"event"`
	ID          string  `json:"id"`
	Call        any     `json:"call"`
	Agent       string  `json:"agent"`
	Title       string  `json:"title"`
	Description string  `json:"description"`
	Preview     string  `json:"preview"`
	Scopes      []scope `json:"scopes"`
	State       string  `json:"state"`
	Reason      string  `json:"reason"`
}

// scope is one thing that a grant can be for; reach is null where it is not known what that opens.
type scope struct {
	Scope string `json:"scope"`
	Words string `json:"words"`
	Reach *struct {
		Paths int `json:"paths"`
	} `json:"reach"`
}

type answer struct {
	ID        string `json:"id"`
	Grant     bool   `json:"grant"`
	Scope     string `json:"scope"`
	Confirmed bool   `json:"confirmed"`
	By        string `json:"by"`
}

// calls are what a model would send.
var calls = []call{
	{0, "create_file", map[string]any{"path": "old/notes.txt", "content": "milk\neggs\n"}},
	{1, "create_file", map[string]any{"path": "LICENSE", "content": "be kind\n"}},
	{2, "delete", map[string]any{"path": "old", "description": "left over"}},
	{3, "delete_file", map[string]any{"path": "LICENSE"}},
}

func main() {
	must(os.WriteFile("ringfence.yaml", []byte(policy), 0o644))
	answersOut, answersIn, err := os.Pipe()
	must(err)
	questionsOut, questionsIn, err := os.Pipe()
	must(err)

	gate := exec.Command("ringfence", "run", "--root", ".", "--agent", "coder", "--approvals-fd", "3,4")
	gate.Stderr = os.Stderr
	// The first of ExtraFiles is descriptor 3 of the process.
	gate.ExtraFiles = []*os.File{answersOut, questionsIn}
	in, err := gate.StdinPipe()
	must(err)
	out, err := gate.StdoutPipe()
	must(err)
	must(gate.Start())
	answersOut.Close() // so that the person's side notices when the process ends
	questionsIn.Close()

	var person sync.WaitGroup
	person.Add(1)
	go func() {
		defer person.Done()
		listen(questionsOut, answersIn)
	}()

	send, results := json.NewEncoder(in), json.NewDecoder(out)
	for _, one := range calls {
		must(send.Encode(one))
		var found result
		must(results.Decode(&found))
		first, _, _ := strings.Cut(found.Content, "\n")
		fmt.Printf("%d %s: %s\n", found.ID, found.Status, first)
	}
	in.Close()
	person.Wait()
	must(gate.Wait())
}

// listen answers what is asked until the other end closes.
func listen(questions io.Reader, answers io.WriteCloser) {
	defer answers.Close()
	messages, replies, terminal := json.NewDecoder(questions), json.NewEncoder(answers), bufio.NewReader(os.Stdin)
	for {
		var found message
		if err := messages.Decode(&found); err == io.EOF {
			return
		} else if err != nil {
			log.Print(err)
			return
		}
		switch found.Event {
		case "asked":
			must(replies.Encode(decide(found, terminal)))
		case "closed":
			fmt.Println(strings.TrimSpace("= " + found.State + " " + found.Reason))
		}
	}
}

// decide shows the person the request and reads their answer; a real harness would open a dialog.
func decide(asked message, terminal *bufio.Reader) answer {
	fmt.Printf("? %s (agent %s, call %v)\n", asked.Title, asked.Agent, asked.Call)
	if asked.Description != "" {
		fmt.Printf("  it says: \"%s\"\n", asked.Description)
	}
	fmt.Println(strings.TrimRight(asked.Preview, "\n"))
	fmt.Print("  y, a or n: ")
	typed := read(terminal)
	for _, wide := range asked.Scopes {
		if typed == "a" && wide.Scope == "session" {
			fmt.Printf("  %s", wide.Words)
			if wide.Reach != nil {
				fmt.Printf(": %d paths now", wide.Reach.Paths)
			}
			fmt.Print("\n  all of that? y or n: ")
			sure := read(terminal) == "y"
			return answer{asked.ID, sure, wide.Scope, sure, "ada"}
		}
	}
	return answer{asked.ID, typed == "y", "once", false, "ada"}
}

// read gives what was typed; the end of input is no yes.
func read(terminal *bufio.Reader) string {
	typed, _ := terminal.ReadString('\n')
	return strings.TrimSpace(typed)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
