// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0

// Package uml lets syzkaller test user-mode Linux, which is a process of this machine. The guest has no
// network: syz-executor reaches the manager by two serial lines (see uml-line.c), and files are copied to
// a folder that the guest mounts as /host. It lives as long as one command, which is in /host/command.
package uml

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/syzkaller/pkg/config"
	"github.com/google/syzkaller/pkg/osutil"
	"github.com/google/syzkaller/pkg/report"
	"github.com/google/syzkaller/vm/vmimpl"
)

func init() {
	vmimpl.Register("uml", vmimpl.Type{Ctor: ctor, Overcommit: true})
}

// Config is the part "vm" of the manager's configuration.
type Config struct {
	Count   int    `json:"count"`   // guests, 1 to 128
	Kernel  string `json:"kernel"`  // the program `linux'
	Initrd  string `json:"initrd"`  // an initramfs
	Cmdline string `json:"cmdline"` // more arguments, such as mem=1G
}

type pool struct {
	env *vmimpl.Env
	cfg *Config
}

type instance struct {
	pool   *pool
	dir    string // for user-mode Linux itself
	files  string // the guest's /host
	port   int    // the manager's
	closed chan bool
	guests sync.WaitGroup // whose lines are open
}

func ctor(env *vmimpl.Env) (vmimpl.Pool, error) {
	cfg := &Config{Count: 1}
	if err := config.LoadData(env.Config, cfg); err != nil {
		return nil, fmt.Errorf("failed to parse vm config: %w", err)
	}
	if cfg.Count < 1 || cfg.Count > 128 {
		return nil, fmt.Errorf("count is %v, not 1 to 128", cfg.Count)
	}
	for _, file := range []string{cfg.Kernel, cfg.Initrd} {
		if !osutil.IsExist(file) {
			return nil, fmt.Errorf("%q does not exist", file)
		}
	}
	return &pool{env, cfg}, nil
}

func (pool *pool) Count() int { return pool.cfg.Count }

func (pool *pool) Create(workdir string, index int) (vmimpl.Instance, error) {
	inst := &instance{
		pool:   pool,
		dir:    workdir,
		files:  filepath.Join(workdir, "host"),
		closed: make(chan bool),
	}
	return inst, osutil.MkdirAll(inst.files)
}

// Close waits for the guest to end: its folder is removed next.
func (inst *instance) Close() error {
	close(inst.closed)
	ended := make(chan bool)
	go func() {
		inst.guests.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
	}
	return nil
}

func (inst *instance) Copy(hostSrc string) (string, error) {
	name := filepath.Base(hostSrc)
	file := filepath.Join(inst.files, name)
	if err := osutil.CopyFile(hostSrc, file); err != nil {
		return "", err
	}
	return "/host/" + name, os.Chmod(file, 0755)
}

func (inst *instance) Forward(port int) (string, error) {
	if inst.port != 0 {
		return "", errors.New("a port is forwarded already")
	}
	inst.port = port
	return "stdin:0", nil
}

// line returns the two ends of a serial line.
func line() (host, guest *os.File, err error) {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	// so that a read ends when the file is closed
	if err := syscall.SetNonblock(ends[0], true); err != nil {
		syscall.Close(ends[0])
		syscall.Close(ends[1])
		return nil, nil, err
	}
	return os.NewFile(uintptr(ends[0]), "line"), os.NewFile(uintptr(ends[1]), "guest's line"), nil
}

// send copies what the manager says to the line, piece by piece: see uml-line.c.
func send(line, lengths io.ReadWriter, conn io.Reader) {
	const piece = 2048 // as in uml-line.c
	var buf [piece]byte
	for {
		n, err := conn.Read(buf[:])
		if err != nil {
			return
		}
		if _, err := line.Write(buf[:n]); err != nil {
			return
		}
		for n > 0 {
			var length [2]byte
			if _, err := io.ReadFull(lengths, length[:]); err != nil {
				return
			}
			n -= int(binary.LittleEndian.Uint16(length[:]))
		}
	}
}

// connect passes on what the guest and the manager say to each other, until one of them has gone.
func (inst *instance) connect(line, lengths *os.File) {
	defer inst.guests.Done()
	defer line.Close()
	defer lengths.Close()
	var ready [2]byte
	if _, err := io.ReadFull(lengths, ready[:]); err != nil || inst.port == 0 {
		return
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("localhost:%v", inst.port))
	if err != nil {
		return
	}
	defer conn.Close()
	go func() {
		send(line, lengths, conn)
		line.Close()
	}()
	io.Copy(conn, line)
}

func (inst *instance) Run(timeout time.Duration, stop <-chan bool, command string) (
	<-chan []byte, <-chan error, error) {
	if err := osutil.WriteFile(filepath.Join(inst.files, "command"), []byte(command+"\n")); err != nil {
		return nil, nil, err
	}
	var host, guest [2]*os.File
	started := false
	for i := range host {
		var err error
		if host[i], guest[i], err = line(); err != nil {
			return nil, nil, err
		}
		defer guest[i].Close()
		defer func(end *os.File) {
			if !started {
				end.Close()
			}
		}(host[i])
	}
	rpipe, wpipe, err := osutil.LongPipe()
	if err != nil {
		return nil, nil, err
	}
	defer wpipe.Close()

	cfg := inst.pool.cfg
	args := append(strings.Fields(cfg.Cmdline), "initrd="+cfg.Initrd, "uml_dir="+inst.dir, "hostfs="+inst.files,
		"con0=fd:0,fd:1", "ssl0=fd:3", "ssl1=fd:4")
	// Without random addresses the module is at the same place in all guests, whose coverage is compared by
	// address; and the gap that the kernel adds to its memory, up to where its heap begins, is small.
	cmd := osutil.Command("setarch", append([]string{"-R", cfg.Kernel}, args...)...)
	cmd.Stdout = wpipe
	cmd.Stderr = wpipe
	cmd.ExtraFiles = guest[:] // 3, 4
	if err := cmd.Start(); err != nil {
		rpipe.Close()
		return nil, nil, err
	}
	started = true
	inst.guests.Add(1)
	go inst.connect(host[0], host[1])

	var tee io.Writer
	if inst.pool.env.Debug {
		tee = os.Stdout
	}
	merger := vmimpl.NewOutputMerger(tee)
	merger.Add("console", rpipe)
	return vmimpl.Multiplex(cmd, merger, timeout, vmimpl.MultiplexConfig{
		Stop:  stop,
		Close: inst.closed,
		Debug: inst.pool.env.Debug,
		Scale: inst.pool.env.Timeouts.Scale,
	})
}

func (inst *instance) Diagnose(*report.Report) ([]byte, bool) { return nil, false }
