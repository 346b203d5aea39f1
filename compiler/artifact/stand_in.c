/* A stand-in for a system library: the smallest ELF shared object that a linker accepts, with a
 * name and symbols and nothing behind them. Linking against it leaves exactly what an artefact
 * should say of the library, on any machine and for any 64-bit little-endian processor.
 *
 * Format: System V ABI, chapter 4 (sections, symbols) and 5 (dynamic section). */
#include <elf.h>
#include <string.h>

#include "artifact/internal.h"

enum { NONE, DYNSYM, DYNSTR, DYNAMIC, SHSTRTAB, SECTIONS };

static const char section_names[] = "\0.dynsym\0.dynstr\0.dynamic\0.shstrtab";

static uint32_t add_string(base_buffer *strings, const char *text) {
  uint32_t at = (uint32_t)strings->size;
  base_buffer_append(strings, text, strlen(text) + 1);
  return at;
}

static void add_section(base_buffer *out, Elf64_Shdr *header, uint32_t name, uint32_t type,
                        const void *data, size_t bytes, size_t entry) {
  base_buffer_align(out, 8);
  *header = (Elf64_Shdr){.sh_name = name,
                         .sh_type = type,
                         .sh_flags = type == SHT_STRTAB && name == 0 ? 0 : SHF_ALLOC,
                         .sh_offset = out->size,
                         .sh_size = bytes,
                         .sh_addralign = 8,
                         .sh_entsize = entry,
                         .sh_link = type == SHT_STRTAB ? 0 : DYNSTR};
  base_buffer_append(out, data, bytes);
}

static void assemble(base_buffer *out, uint16_t machine, const base_buffer *symbols,
                     const base_buffer *strings, uint32_t name) {
  Elf64_Ehdr header = {
      .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
      .e_type = ET_DYN,
      .e_machine = machine,
      .e_version = EV_CURRENT,
      .e_ehsize = sizeof header,
      .e_shentsize = sizeof(Elf64_Shdr),
      .e_shnum = SECTIONS,
      .e_shstrndx = SHSTRTAB};
  const Elf64_Dyn dynamic[] = {{.d_tag = DT_SONAME, .d_un.d_val = name}, {.d_tag = DT_NULL}};
  Elf64_Shdr sections[SECTIONS] = {0};
  size_t start = out->size;
  base_buffer_append(out, &header, sizeof header);
  add_section(out, &sections[DYNSYM], 1, SHT_DYNSYM, symbols->data, symbols->size,
              sizeof(Elf64_Sym));
  sections[DYNSYM].sh_info = 1; /* the first symbol that is not local */
  add_section(out, &sections[DYNSTR], 9, SHT_STRTAB, strings->data, strings->size, 0);
  add_section(out, &sections[DYNAMIC], 17, SHT_DYNAMIC, dynamic, sizeof dynamic, sizeof dynamic[0]);
  add_section(out, &sections[SHSTRTAB], 26, SHT_STRTAB, section_names, sizeof section_names, 0);
  base_buffer_align(out, 8);
  header.e_shoff = out->size - start;
  base_buffer_append(out, sections, sizeof sections);
  if (!out->failed) memcpy(out->data + start, &header, sizeof header);
}

void artifact_stand_in(const artifact_library *library, uint16_t machine, base_buffer *out) {
  base_buffer symbols = {0}, strings = {0};
  Elf64_Sym symbol = {0};
  add_string(&strings, "");
  base_buffer_append(&symbols, &symbol, sizeof symbol);
  for (const char *const *name = library->symbols; *name; name++) {
    symbol = (Elf64_Sym){.st_name = add_string(&strings, *name),
                         .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                         .st_shndx = SHN_ABS};
    base_buffer_append(&symbols, &symbol, sizeof symbol);
  }
  uint32_t name = add_string(&strings, library->name);
  assemble(out, machine, &symbols, &strings, name);
  out->failed |= symbols.failed || strings.failed;
  base_buffer_deinit(&symbols);
  base_buffer_deinit(&strings);
}
